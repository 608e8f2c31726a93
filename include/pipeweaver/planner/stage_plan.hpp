// Plans a step from measured stage times: every policy, a search, and the schedule under PyTorch's rules.
//
// Determinism  as planner::make_plan().
#pragma once

#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/schedule/stage_table.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

struct StageRequest {
    schedule::StageTable table;
    schedule::StageOptions options;  ///< with `for_torch` the plan itself keeps PyTorch's rules
    std::string strategy = "default";
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> max_rounds;  ///< of each search
};

/// A schedule with the problem that it solves.
struct StageSchedule {
    schedule::Problem problem;
    search::Found found;  ///< no schedule: why_not says which rank and how many bytes
};

struct StagePlan {
    StageSchedule best;               ///< always has a schedule
    std::vector<PolicyRun> policies;  ///< all of them, on `best.problem`
    StageSchedule torch;              ///< its problem is empty where the stages do not fit with PyTorch's buffers
};

/// Without `for_torch`, half of the budget goes to the schedule for PyTorch, and the plan starts from that; with it
/// they are one. Throws Error{limit} where nothing fits, and what stage_problem() throws.
[[nodiscard]] StagePlan plan_stages(const StageRequest& request, const Executor& execute, const Time& time);

}  // namespace pipeweaver::planner
