#include "pipeweaver/planner/stage_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/torch_rules.hpp"

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

constexpr double torch_share = 0.5;

search::Options search_options(const StageRequest& request) {
    search::Options options;
    options.strategy = request.strategy;
    options.seed = request.seed;
    options.max_rounds = request.max_rounds;
    return options;
}

StageSchedule solve_for_torch(const StageRequest& request, const Executor& execute,
                              const search::KeepGoing& keep_going) {
    StageSchedule result;
    StageOptions rules = request.options;
    rules.for_torch = true;
    try {
        result.problem = stage_problem(request.table, rules);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::limit) throw;
        result.found.why_not = fmt::format("with receive buffers for all microbatches {}", error.what());
        return result;
    }
    if (const auto why = not_expressible_in_torch(result.problem)) {
        result.found.why_not = *why;
        return result;
    }
    search::Options options = search_options(request);
    options.rules = torch_rules(result.problem);
    result.found = search::solve(Replayer(result.problem), options, execute, keep_going);
    return result;
}

std::vector<StagePolicy> apply_policies(const Problem& problem) {
    const Replayer replayer(problem);
    std::vector<StagePolicy> all;
    for (const auto& policy : search::policies())
        all.push_back({policy.name, search::apply_policy(policy.name, replayer)});
    return all;
}

void require_schedule(const StageRequest& request, const search::Found& found) {
    if (!found.schedule) fail(ErrorKind::limit, "{}: {}", request.table.name, found.why_not);
}

}  // namespace

StagePlan plan_stages(const StageRequest& request, const Executor& execute, const Allowance& allowance) {
    StagePlan plan;
    if (request.options.for_torch) {
        plan.torch = solve_for_torch(request, execute, allowance(1));
        require_schedule(request, plan.torch.found);
        plan.best = plan.torch;
    } else {
        plan.best.problem = stage_problem(request.table, request.options);
        plan.torch = solve_for_torch(request, execute, allowance(torch_share));
        search::Options options = search_options(request);
        if (plan.torch.found.schedule) options.starts.push_back(*plan.torch.found.schedule);
        plan.best.found = search::solve(Replayer(plan.best.problem), options, execute, allowance(1 - torch_share));
        require_schedule(request, plan.best.found);
    }
    plan.policies = apply_policies(plan.best.problem);
    return plan;
}

}  // namespace pipeweaver::planner
