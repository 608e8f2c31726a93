// Which of the schedules that a search found is taken.
#pragma once

#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/planner/robustness.hpp"
#include "pipeweaver/planner/time.hpp"

#include <optional>
#include <span>

namespace pipeweaver::planner {

/// The schedule of the smallest makespan, or another one near to it that stands up better to wrong costs: then `found`
/// is changed to it. No makespan becomes longer than `limit`, the fastest known schedule's. What is proven optimal is
/// given up only by a rule by median. Pre: found.schedule is of the step.
[[nodiscard]] RobustChoice choose(const emulator::StepProblem& step, search::Found& found,
                                  std::optional<Duration> limit, const ChoiceRule& rule, std::uint64_t seed,
                                  const Executor& execute);

// A plan's second objective: of schedules with the same makespan, one that leaves more memory free.

/// Makes the largest peak of `found` smaller, as a fraction of its rank's capacity, at the same makespan or a shorter
/// one: takes the least full of the alternatives that are as fast, then a few rounds of annealing on it
/// (search::lower_memory), a fixed number, so that rounds decide the result and the makespan keeps the budget. Lower
/// peaks use up slack: `found` stays as it was where the other schedule's median under wrong costs (robustness.hpp)
/// is longer by more than rule.within, or at all if the rule is by median; also where nothing is gained, and where
/// no time is left. `known` are policies' schedules of the step that keep the rules of `options`: they count as
/// alternatives. Pre: found.schedule, of `step`.
void lower_peak(const emulator::StepProblem& step, std::span<const search::FoundSchedule> known, search::Found& found,
                const search::Options& options, const ChoiceRule& rule, const Executor& execute, const Time& time);

}  // namespace pipeweaver::planner
