#include "planner/assemble.hpp"

#include "planner/split_search.hpp"
#include "planner/time_shares.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

void require_sensible(const Request& request) {
    check(request.layout, request.cluster, request.model);
    const auto replicas = static_cast<std::size_t>(request.layout.dp);
    if (request.microbatches.size() < replicas)
        fail(ErrorKind::input, "--dp: {} replicas are more than the batch's {} microbatches, and each needs one",
             replicas, request.microbatches.size());
    // Every microbatch passes each rank at least once.
    const std::size_t most_of_one = (request.microbatches.size() + replicas - 1) / replicas;
    require_plannable(most_of_one, 2 * most_of_one * static_cast<std::size_t>(request.layout.pp));
}

}  // namespace

Shared share(const Request& request, const partition::Workload& workload, const Executor& execute) {
    require_sensible(request);
    const auto replicas = static_cast<std::size_t>(request.layout.dp);
    const auto costs = partition::microbatch_costs(workload, execute);
    const auto largest = [&](const partition::Shares& shares) {
        const auto loads = partition::loads(shares, costs);
        return *std::max_element(loads.begin(), loads.end());
    };
    const auto turn = partition::in_turn(costs.size(), replicas);
    Shared shared{request.sharing == partition::Sharing::in_turn ? turn : partition::balance(costs, replicas), {}};
    shared.loads.largest = largest(shared.shares);
    shared.loads.mean = std::accumulate(costs.begin(), costs.end(), Duration{}) / request.layout.dp;
    shared.loads.largest_in_turn = largest(turn);
    return shared;
}

Parts parts_of(const Request& request, const partition::Shares& shares) {
    Parts parts(shares.size());
    for (std::size_t r = 0; r < shares.size(); ++r)
        for (const std::size_t i : shares[r]) parts[r].push_back(request.microbatches[i]);
    return parts;
}

Plan assemble(const Request& request, const Shared& shared, std::vector<Compared> chosen, Plan plan) {
    plan.loads = shared.loads;
    Duration optimizer{};
    for (std::size_t r = 0; r < chosen.size(); ++r) {
        ReplicaPlan replica;
        replica.microbatches = shared.shares[r];
        replica.candidate = std::move(chosen[r].candidate);
        replica.found = std::move(chosen[r].found);
        if (const auto& split = chosen[r].parts)
            replica.candidate.step = join_needless(replica.candidate.step, *split, replica.found);
        if (r == 0 || replica.found.replay.makespan > plan.makespan) plan.slowest = r;
        plan.makespan = std::max(plan.makespan, replica.found.replay.makespan);
        plan.lower_bound = std::max(plan.lower_bound, replica.found.bound);
        optimizer = std::max(optimizer, replica.candidate.step.optimizer);
        plan.model_flops += replica.candidate.step.model_flops;
        add_shares(replica.candidate.step, *replica.found.schedule, plan.shares);
        plan.replicas.push_back(std::move(replica));
    }
    normalise(plan.shares);
    plan.step = plan.makespan + optimizer;
    const double peak =
        workloads::device(request.cluster.device).bf16_flops * static_cast<double>(request.layout.gpus());
    plan.mfu = plan.model_flops / (peak * static_cast<double>(plan.step.count()) * 1e-9);
    return plan;
}

}  // namespace pipeweaver::planner
