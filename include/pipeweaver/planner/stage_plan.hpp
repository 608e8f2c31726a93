// Plans a step from measured stage times: every policy, a search, and the schedules under the rules of targets:
// a plan of one replica without a model.
//
// Determinism  as planner::make_plan().
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/search/search.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

struct StageRequest {
    schedule::StageTable table;
    schedule::StageOptions options;  ///< what a target changes of them is the plan's business
    std::string target = "free";     ///< of targets(): whose rules the plan itself keeps
    std::string strategy = "default";
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> max_rounds;  ///< of each search
};

/// A schedule for a target, with the problem that it solves.
struct StageSchedule {
    std::string target = "free";
    schedule::Problem problem{};  ///< empty where the stages do not fit with the target's buffers
    search::Found found{};        ///< no schedule: why_not says which rank and how many bytes
};

/// Where split backwards take longer (StageOptions::split_slowdown): the plan is the better of one with all of them
/// split that may be and one with none.
struct SplitOrWhole {
    bool split = false;    ///< what the plan took
    Duration otherwise{};  ///< makespan of the other
    double slowdown = 1;
    schedule::Problem problem{};  ///< that the other solves
};

struct StagePlan {
    StageSchedule best;  ///< always has a schedule
    std::optional<SplitOrWhole> split_or_whole{};
    std::vector<PolicyRun> policies;  ///< all of them, each on problem_of() it
    std::vector<StageSchedule>
        targets;  ///< one for each target that has a plan of its own; one that is asked for alone

    /// What the schedule of one of `policies` is of: `best.problem`, or that of the other form of backwards. Throws
    /// Error{input} for a name that is none of search::policies().
    [[nodiscard]] const schedule::Problem& problem_of(const PolicyRun& run) const;
};

/// The schedule of the stages under the rules of a target, searched, or the fastest of its own orders. The target need
/// be none of targets(). Throws Error{input} as stage_problem().
[[nodiscard]] StageSchedule schedule_stages(const StageRequest& request, const Target& target, const Executor& execute,
                                            const Time& time);

/// Half of the budget goes to the schedules for targets, and the plan starts from those; of a target that is asked for
/// they are one. Where split backwards take longer, half goes to a plan without any, and each of `policies` has the
/// backwards that it asks for. Throws Error{limit} where nothing fits, and what stage_problem() throws.
[[nodiscard]] StagePlan plan_stages(const StageRequest& request, const Executor& execute, const Time& time);

// One search of a given problem, with what `solve` may be asked for: a target's rules, a warm start, a second
// objective.

struct SolveRequest {
    std::string strategy = "default";
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> max_rounds;
    std::string target = "free";  ///< of targets(): whose rules to keep
    bool lower_memory = false;    ///< then the largest peak, at the makespan found
    std::vector<schedule::Schedule> starts;
};

/// Searches. Seven tenths of the time go to the makespan if a second objective follows. The answer may have no
/// schedule; why_not then says why. Throws Error{limit} "NAME: why" where the target cannot run the problem, and as
/// search::solve().
[[nodiscard]] search::Found solve_problem(const schedule::Replayer& replayer, const SolveRequest& request,
                                          const Executor& execute, const Time& time);

}  // namespace pipeweaver::planner
