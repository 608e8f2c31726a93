#include "pipeweaver/planner/stage_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/lower_memory.hpp"
#include "pipeweaver/search/standing.hpp"
#include "planner/evaluate/step.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

template <class Request>
search::Options search_options(const Request& request) {
    search::Options options;
    options.strategy = request.strategy;
    options.seed = request.seed;
    options.max_rounds = request.max_rounds;
    options.patience = patience;
    return options;
}

// The fastest of the policies that a target with an order of its own runs, of equal ones the least full.
search::Found fastest_of(const Target& target, const Problem& problem, const Executor& execute) {
    PolicyRun* fastest = nullptr;
    search::Found none;
    auto runs = policies_of(problem, execute);
    const auto standing = [&problem](const PolicyRun& run) { return search::standing_of(problem, run.result.replay); };
    for (PolicyRun& run : runs) {
        if (!runs_policy(target, run.policy)) continue;
        const auto broken =
            run.applies() && target.breaks != nullptr ? target.breaks(problem, *run.result.schedule) : std::nullopt;
        if (!run.applies() || broken)
            none.why_not = broken.value_or(run.result.why_not);
        else if (fastest == nullptr || standing(run) < standing(*fastest))
            fastest = &run;
    }
    if (fastest == nullptr) return none;
    return search::as_found(fastest->policy, std::move(fastest->result), search::best_bound(Replayer(problem)));
}

// How the search of a problem that no partition made ends: takes the best of the policies' schedules by
// search/standing.hpp where it is better than what was found and keeps the target's rules; then a few rounds of
// annealing for a smaller peak at that makespan (search::lower_memory), a fixed number, so that the search's rounds
// decide the result. Problems with more than search::most_tasks_in_rounds tasks have no such rounds. Nothing is done
// where nothing was found, or where whoever waits has ended the search. `policies` are of the problem; `options` are
// those of the search.
void take_smaller_peak(const Replayer& replayer, const Target& target, const std::vector<PolicyRun>& policies,
                       const search::Options& options, search::Found& found, const Executor& execute,
                       const Time& time) {
    if (!found.schedule || found.stop_reason == StopReason::stopped) return;
    const Problem& problem = replayer.problem();
    std::vector<search::FoundSchedule> known;
    known.reserve(policies.size());
    for (const PolicyRun& run : policies)
        if (run.applies() && (target.breaks == nullptr || !target.breaks(problem, *run.result.schedule)))
            known.push_back({*run.result.schedule, run.makespan(), run.policy});
    search::take_known(replayer, options, known, found);
    if (problem.tasks.size() > search::most_tasks_in_rounds) return;
    search::lower_memory(replayer, options, execute, found, time.keep_going(), peak_rounds);
}

void require_schedule(const StageRequest& request, const search::Found& found) {
    if (!found.schedule) fail(ErrorKind::limit, "{}: {}", request.table.name, found.why_not);
}

}  // namespace

StageSchedule schedule_stages(const StageRequest& request, const Target& target, const Executor& execute,
                              const Time& time) {
    StageSchedule result{.target = target.name};
    BuiltStages built = build_stages(request.table, stage_options(request.options, target));
    if (!built.why_not.empty()) {
        result.found.why_not = fmt::format(
            "{}{}", target.buffers_for_all ? "with receive buffers for all microbatches " : "", built.why_not);
        return result;
    }
    result.problem = std::move(built.problem);
    if (target.inexpressible != nullptr)
        if (const auto why = target.inexpressible(result.problem)) {
            result.found.why_not = *why;
            return result;
        }
    if (!target.searches) {
        result.found = fastest_of(target, result.problem, execute);
        return result;
    }
    search::Options options = search_options(request);
    options.rules = rules_of(target, result.problem);
    const Replayer replayer(result.problem);
    result.found = search::solve(replayer, options, execute, time.fraction(fractions.search).keep_going());
    take_smaller_peak(replayer, target, policies_of(result.problem, execute), options, result.found, execute, time);
    return result;
}

namespace {

StagePlan plan_form(const StageRequest& request, const Executor& execute, const Time& time) {
    StagePlan plan;
    const Target& asked = target(request.target);
    if (has_own_plan(asked)) {
        plan.best = schedule_stages(request, asked, execute, time);
        plan.targets.push_back(plan.best);
    } else {
        plan.best.problem = stage_problem(request.table, request.options);
        search::Options options = search_options(request);
        for (const Target& one : targets()) {
            if (!has_own_plan(one)) continue;
            plan.targets.push_back(schedule_stages(request, one, execute, time.fraction(fractions.stages_target)));
            if (const search::Found& found = plan.targets.back().found; found.schedule)
                options.starts.push_back(*found.schedule);
        }
        const Replayer replayer(plan.best.problem);
        plan.best.found = search::solve(replayer, options, execute, time.fraction(fractions.search).keep_going());
        plan.policies = policies_of(plan.best.problem, execute);
        take_smaller_peak(replayer, asked, plan.policies, options, plan.best.found, execute, time);
    }
    require_schedule(request, plan.best.found);
    if (plan.policies.empty()) plan.policies = policies_of(plan.best.problem, execute);
    return plan;
}

bool splits(const StageTable& table) {
    return std::any_of(table.stages.begin(), table.stages.end(),
                       [](const StageTimes& stage) { return stage.weight.has_value(); });
}

StageTable with_whole_backwards(StageTable table) {
    for (StageTimes& stage : table.stages) stage.backward += std::exchange(stage.weight, {}).value_or(Duration{});
    return table;
}

// Each has the backwards that it asks for, whatever the plan took.
bool is_of_other_form(const PolicyRun& run, bool is_split) {
    return search::policy(run.policy).needs_split != is_split;
}

}  // namespace

const Problem& StagePlan::problem_of(const PolicyRun& run) const {
    return split_or_whole && is_of_other_form(run, split_or_whole->split) ? split_or_whole->problem : best.problem;
}

StagePlan plan_stages(const StageRequest& request, const Executor& execute, const Time& time) {
    const double slowdown = request.options.split_slowdown;
    if (slowdown == 1 || !splits(request.table)) return plan_form(request, execute, time);
    StageRequest unsplit = request;
    unsplit.table = with_whole_backwards(request.table);
    StagePlan whole = plan_form(unsplit, execute, time.fraction(fractions.stages_whole));
    StagePlan split = plan_form(request, execute, time);
    const auto standing = [](const StagePlan& plan) {
        return search::standing_of(plan.best.problem, plan.best.found.replay);
    };
    const bool is_split = standing(split) < standing(whole);
    StagePlan &taken = is_split ? split : whole, &left = is_split ? whole : split;
    taken.split_or_whole =
        SplitOrWhole{is_split, left.best.found.replay.makespan, slowdown, std::move(left.best.problem)};
    for (std::size_t i = 0; i < taken.policies.size(); ++i)
        if (is_of_other_form(taken.policies[i], is_split)) taken.policies[i] = std::move(left.policies[i]);
    return std::move(taken);
}

search::Found solve_problem(const Replayer& replayer, const SolveRequest& request, const Executor& execute,
                            const Time& time) {
    search::Options options = search_options(request);
    options.starts = request.starts;
    const Target& runtime = target(request.target);
    options.rules = rules_of(runtime, replayer.problem());
    const Time first = time.fraction(request.lower_memory ? fractions.makespan : fractions.search);
    auto found = search::solve(replayer, options, execute, first.keep_going());
    const bool is_large = replayer.problem().tasks.size() > search::most_tasks_at_leisure;
    if (found.schedule)
        take_smaller_peak(replayer, runtime, policies_of(replayer.problem(), execute, is_large), options, found,
                          execute, time);
    if (found.schedule && request.lower_memory)
        search::lower_memory(replayer, options, execute, found, time.keep_going());
    if (found.schedule && runtime.breaks != nullptr)
        if (const auto why = runtime.breaks(replayer.problem(), *found.schedule)) fail(ErrorKind::limit, "{}", *why);
    return found;
}

}  // namespace pipeweaver::planner
