#include "pipeweaver/planner/plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "planner/opponents.hpp"
#include "planner/selection.hpp"
#include "planner/time_shares.hpp"
#include "planner/torch_plan.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Workload;

namespace {

// Shares of the budget. The modality-aware partition has most to gain from a search.
constexpr double torch_share = 0.3;
constexpr double torch_share_if_wanted = 0.5;
constexpr double main_part = 0.7;  // of what is left

struct Shared {
    partition::Shares shares;
    ReplicaLoads loads;
};

Shared share(const Request& request, const Workload& workload) {
    const auto replicas = static_cast<std::size_t>(request.layout.dp);
    const auto costs = partition::microbatch_costs(workload);
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

std::optional<Duration> fastest(const std::vector<Baseline>& baselines) {
    std::optional<Duration> time;
    for (const Baseline& one : baselines) time = std::min(time.value_or(one.makespan), one.makespan);
    return time;
}

}  // namespace

Plan make_plan(const Request& request, const costdb::CostDatabase& costs, const Executor& execute,
               const Allowance& allowance) {
    check(request.layout, request.cluster, request.model);
    const auto replicas = static_cast<std::size_t>(request.layout.dp);
    if (request.microbatches.size() < replicas)
        fail(ErrorKind::input, "--dp: {} replicas are more than the batch's {} microbatches, and each needs one",
             replicas, request.microbatches.size());
    // Every microbatch passes each rank at least once.
    const std::size_t most_of_one = (request.microbatches.size() + replicas - 1) / replicas;
    require_plannable(most_of_one, 2 * most_of_one * static_cast<std::size_t>(request.layout.pp));
    const Workload workload{&request.model, &request.cluster, &costs, request.layout, &request.microbatches};
    const auto all = partitions(request, workload);

    const Shared shared = share(request, workload);
    Parts parts(replicas);
    for (std::size_t r = 0; r < replicas; ++r)
        for (const std::size_t i : shared.shares[r]) parts[r].push_back(request.microbatches[i]);
    auto compared = compare_all(request, costs, all, parts, execute);

    const auto searched = worth_searching(compared);
    const ChoiceRule rule = choice_rule(request.robust);
    const double for_torch = request.for_torch ? torch_share_if_wanted : torch_share;
    for (const std::size_t p : searched) {
        const double part = searched.size() == 1 ? 1 : p == searched.front() ? main_part : 1 - main_part;
        const double share = (1 - for_torch) * part / static_cast<double>(replicas);
        for (auto& replica : compared) search_in(replica[p], request, rule, execute, limits(allowance, share));
    }

    Plan plan;
    plan.loads = shared.loads;
    merge_baselines(compared, plan);
    const auto selected = select(compared, searched, fastest(plan.baselines), rule, request.seed, execute);
    const std::size_t best = selected.partition;
    plan.choice = selected.choice;
    plan.slowest = slowest_replica(compared, best);
    plan.best_chain = best_chain(compared[plan.slowest], plan.baselines);
    plan.robustness = robustness_of(compared, best, opponents(plan), request.seed, execute);
    Duration optimizer{};
    for (std::size_t r = 0; r < replicas; ++r) {
        ReplicaPlan replica;
        replica.microbatches = shared.shares[r];
        replica.candidate = std::move(compared[r][best].candidate);
        replica.found = std::move(compared[r][best].found);
        if (const auto& split = compared[r][best].parts)
            replica.candidate.step = join_needless(replica.candidate.step, *split, replica.found);
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
    plan.torch = make_torch_plan(request, costs, all, parts.front(), execute, limits(allowance, for_torch));
    if (request.for_torch && !plan.torch.found.schedule) fail(ErrorKind::limit, "torch-csv: {}", plan.torch.why_not);
    return plan;
}

}  // namespace pipeweaver::planner
