// A warm start: schedules of a new batch that follow the order in which the previous batch was run.
//
// Determinism  equal arguments give equal schedules.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <vector>

namespace pipeweaver::search {

/// Schedules of `next`, within memory, for Options::starts: each task has as its priority the start that its
/// counterpart had in `schedule`. The counterpart has the same rank, stage, kind, module, microbatch and item; where
/// the previous batch has fewer items or microbatches, it is the nearest before. Microbatches are matched by number
/// and, in other schedules, by work (the heaviest with the heaviest). Modes are the counterparts' where all of them
/// fit, else the fastest uniform ones that do. Empty where no safe order of microbatches is known, or no task has a
/// counterpart. Pre: `schedule` is a schedule of `previous` that runs. Time O((tasks + edges) log tasks).
[[nodiscard]] std::vector<schedule::Schedule> carry_over(const schedule::Problem& previous,
                                                         const schedule::Schedule& schedule,
                                                         const schedule::Replayer& next);

}  // namespace pipeweaver::search
