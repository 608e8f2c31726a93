// A second opinion on a schedule: its makespan and memory worked out step by step from the problem's own rules, with
// none of the code that the search and Replayer use. Slow and plain on purpose.
#pragma once

#include "pipeweaver/schedule/solution.hpp"

#include <string>

namespace pipeweaver::bench {

/// What is wrong with the claim that `schedule` runs within every rank's memory and takes `makespan`; empty: nothing.
[[nodiscard]] std::string refuted(const schedule::Problem& problem, const schedule::Schedule& schedule,
                                  Duration makespan);

/// Throws Error{limit} if anything is wrong with it, naming the problem and `who` made the schedule.
void require_right(const schedule::Problem& problem, const std::string& who, const schedule::Schedule& schedule,
                   Duration makespan);

}  // namespace pipeweaver::bench
