// A plan's second objective: of schedules with the same makespan, one that leaves more memory free.
#pragma once

#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/search/search.hpp"

namespace pipeweaver::planner {

/// Makes the largest peak of `found` smaller, as a fraction of its rank's capacity, at the same makespan: takes the
/// least full of the alternatives that are as fast, then a few rounds of annealing on it (search::lower_memory), as many
/// whatever the search before it took, so that rounds decide the result and the makespan keeps the budget. `found` stays
/// as it was where nothing is gained, where `keep_going` says so, and where the other schedule is clearly more often
/// slower if costs are wrong (robust_choice.hpp), which matters more. Pre: found.schedule, of `step`.
void lower_peak(const emulator::StepProblem& step, search::Found& found, const search::Options& options,
                const Executor& execute, const search::KeepGoing& keep_going);

}  // namespace pipeweaver::planner
