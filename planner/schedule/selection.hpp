// Which of the schedules that a search found is taken.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/planner/robust_choice.hpp"

#include <optional>

namespace pipeweaver::planner {

/// The schedule of the smallest makespan, or another one near to it that stands up better to wrong costs: then `found`
/// is changed to it. No makespan becomes longer than `limit`, the fastest known schedule's. What is proven optimal is
/// given up only by a rule by median. Pre: found.schedule is of the step.
[[nodiscard]] RobustChoice choose(const emulator::StepProblem& step, search::Found& found,
                                  std::optional<Duration> limit, const ChoiceRule& rule, std::uint64_t seed,
                                  const Executor& execute);

}  // namespace pipeweaver::planner
