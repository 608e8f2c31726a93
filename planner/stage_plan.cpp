#include "pipeweaver/planner/stage_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/evaluate/step.hpp"

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

search::Options search_options(const StageRequest& request) {
    return {request.strategy, request.seed, request.max_rounds, {}, {}, {}};
}

// Under the rules of the target with a fixed chain.
StageSchedule solve_for_target(const StageRequest& request, const Executor& execute, const Time& time) {
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
    const Target& torch = target("torch-csv");
    if (const auto why = torch.inexpressible(result.problem)) {
        result.found.why_not = *why;
        return result;
    }
    search::Options options = search_options(request);
    options.rules = torch.rules(result.problem);
    result.found = search::solve(Replayer(result.problem), options, execute, time.keep_going());
    return result;
}

void require_schedule(const StageRequest& request, const search::Found& found) {
    if (!found.schedule) fail(ErrorKind::limit, "{}: {}", request.table.name, found.why_not);
}

}  // namespace

StagePlan plan_stages(const StageRequest& request, const Executor& execute, const Time& time) {
    StagePlan plan;
    if (request.options.for_torch) {
        plan.torch = solve_for_target(request, execute, time);
        require_schedule(request, plan.torch.found);
        plan.best = plan.torch;
    } else {
        plan.best.problem = stage_problem(request.table, request.options);
        plan.torch = solve_for_target(request, execute, time.fraction(fractions.stages_target));
        search::Options options = search_options(request);
        if (plan.torch.found.schedule) options.starts.push_back(*plan.torch.found.schedule);
        plan.best.found = search::solve(Replayer(plan.best.problem), options, execute, time.keep_going());
        require_schedule(request, plan.best.found);
    }
    plan.policies = policies_of(plan.best.problem, execute);
    return plan;
}

}  // namespace pipeweaver::planner
