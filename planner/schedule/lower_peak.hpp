// A plan's second objective: of schedules with the same makespan, one that leaves more memory free.
#pragma once

#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/planner/robust_choice.hpp"
#include "pipeweaver/planner/time.hpp"

#include <span>

namespace pipeweaver::planner {

/// Makes the largest peak of `found` smaller, as a fraction of its rank's capacity, at the same makespan or a shorter
/// one: takes the least full of the alternatives that are as fast, then a few rounds of annealing on it
/// (search::lower_memory), a fixed number, so that rounds decide the result and the makespan keeps the budget. Lower
/// peaks use up slack: `found` stays as it was where the other schedule's median under wrong costs (robust_choice.hpp)
/// is longer by more than rule.within, or at all if the rule is by median; also where nothing is gained, and where
/// no time is left. `known` are policies' schedules of the step that keep the rules of `options`: they count as
/// alternatives. Pre: found.schedule, of `step`.
void lower_peak(const emulator::StepProblem& step, std::span<const search::FoundSchedule> known, search::Found& found,
                const search::Options& options, const ChoiceRule& rule, const Executor& execute, const Time& time);

}  // namespace pipeweaver::planner
