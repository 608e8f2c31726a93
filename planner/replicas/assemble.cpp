#include "planner/replicas/assemble.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "planner/job/sample.hpp"
#include "planner/options/recompute_menu.hpp"
#include "planner/schedule/split_search.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

std::vector<partition::Partition> partitions_of(const Job& job, const Batch& batch) {
    if (job.fixed) return {job.fixed->partition};
    auto all = partition::partitions_for(partition::Use::framework, *job.setup, cut_on(job, batch), job.partition);
    for (partition::Partition& one : all) one.modes = menu_of(job);
    return all;
}

std::vector<std::size_t> replicas_of(const Job& job, const Wanted& wanted) {
    if (!wanted.replicas.empty()) return wanted.replicas;
    std::vector<std::size_t> all(static_cast<std::size_t>(job.setup->layout.dp));
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
}

TargetPlan no_target_plan(const Target& target, const std::string& why) {
    TargetPlan plan;
    plan.target = target.name;
    plan.why_not = why;
    return plan;
}

std::vector<TargetPlan> no_target_plans(const std::string& why) {
    std::vector<TargetPlan> plans;
    for (const Target& one : targets())
        if (has_own_plan(one)) plans.push_back(no_target_plan(one, why));
    return plans;
}

Duration mean_makespan(const Plan& plan) {
    Duration sum{};
    for (const ReplicaPlan& replica : plan.replicas) sum += replica.found.replay.makespan;
    return sum / static_cast<std::int64_t>(plan.replicas.size());
}

Plan assemble(const Job& job, const Assignment& assignment, std::vector<ReplicaPlan> replicas) {
    Plan plan;
    plan.loads = assignment.loads;
    Duration optimizer{};
    for (std::size_t r = 0; r < replicas.size(); ++r) {
        const ReplicaPlan& replica = replicas[r];
        if (r == 0 || replica.found.replay.makespan > plan.makespan) plan.slowest = r;
        plan.makespan = std::max(plan.makespan, replica.found.replay.makespan);
        plan.lower_bound = std::max(plan.lower_bound, replica.found.bound);
        optimizer = std::max(optimizer, replica.optimizer);
        plan.model_flops += replica.model_flops;
        plan.shares += replica.shares;
    }
    plan.replicas = std::move(replicas);
    normalise(plan.shares);
    plan.step = plan.makespan + optimizer;
    const Setup& setup = *job.setup;
    Layout planned = setup.layout;
    planned.dp = static_cast<std::int64_t>(plan.replicas.size());
    plan.mfu = model_flops_utilization(plan.model_flops, setup.cluster, planned, plan.step);
    plan.in_situ = in_situ_factors(*setup.costs, setup.cluster.device, precision_of(setup.recipe.execution.products));
    return plan;
}

}  // namespace pipeweaver::planner
