// Where the busy time of a schedule goes, by operator class and basis.
#pragma once

#include "pipeweaver/planner/plan.hpp"

namespace pipeweaver::planner {

/// Adds a schedule's busy time, recomputation included, in nanoseconds.
void add_shares(const emulator::StepProblem& step, const schedule::Schedule& schedule, TimeShares& sum);

/// Makes them sum to 1.
void normalise(TimeShares& shares);

}  // namespace pipeweaver::planner
