// Where the busy time of a schedule goes, by operator class and basis.
#pragma once

#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/schedule/solution.hpp"

namespace pipeweaver::emulator {

/// Busy time by operator class and basis, recomputation included: nanoseconds, or shares that sum to 1.
struct TimeShares {
    double by[operator_classes][PassCost::bases] = {};
    double of(costdb::Basis basis) const;
    TimeShares& operator+=(const TimeShares& other);
};

/// Adds a schedule's busy time in nanoseconds.
void add_shares(const StepProblem& step, const schedule::Schedule& schedule, TimeShares& sum);

/// Makes them sum to 1.
void normalise(TimeShares& shares);

}  // namespace pipeweaver::emulator
