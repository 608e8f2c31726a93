#include "planner/assemble.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "planner/choose/split_search.hpp"
#include "planner/job/sample.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

std::vector<partition::Partition> partitions_of(const Request& request, const Scope& scope) {
    if (!scope.partitions.empty()) return scope.partitions;
    if (request.fixed) return {request.fixed->partition};
    return partition::partitions(*request.setup, cut_on(request), request.partition);
}

std::vector<TargetPlan> no_target_plans(const std::string& why) {
    std::vector<TargetPlan> plans;
    for (const Target& one : targets())
        if (one.fixed_chain) {
            TargetPlan& plan = plans.emplace_back();
            plan.target = one.name;
            plan.why_not = why;
        }
    return plans;
}

Plan assemble(const Request& request, const Shared& shared, std::vector<Compared> chosen) {
    Plan plan;
    plan.loads = shared.loads;
    Duration optimizer{};
    for (std::size_t r = 0; r < chosen.size(); ++r) {
        ReplicaPlan replica;
        replica.microbatches = shared.shares[r];
        replica.cut = std::move(chosen[r].known.cut);
        replica.found = std::move(chosen[r].found);
        if (const auto& split = chosen[r].parts)
            replica.cut.step = join_needless(replica.cut.step, *split, replica.found);
        replica.waits = set_lags(replica.cut.step, *replica.found.schedule);
        if (r == 0 || replica.found.replay.makespan > plan.makespan) plan.slowest = r;
        plan.makespan = std::max(plan.makespan, replica.found.replay.makespan);
        plan.lower_bound = std::max(plan.lower_bound, replica.found.bound);
        optimizer = std::max(optimizer, replica.cut.step.optimizer);
        plan.model_flops += replica.cut.step.model_flops;
        add_shares(replica.cut.step, *replica.found.schedule, plan.shares);
        plan.replicas.push_back(std::move(replica));
    }
    normalise(plan.shares);
    plan.step = plan.makespan + optimizer;
    const Setup& setup = *request.setup;
    plan.mfu = model_flops_utilization(plan.model_flops, setup.cluster, setup.layout, plan.step);
    plan.in_situ = in_situ_factors(*setup.costs, setup.cluster.device);
    return plan;
}

}  // namespace pipeweaver::planner
