// A warm start: schedules of a new batch that follow the order in which the previous batch was run.
//
// Determinism  equal arguments give equal schedules.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <vector>

namespace pipeweaver::search {

/// Schedules of `next`, within memory, in which each task wishes the place that its like had in `schedule`; for
/// Options::starts. The like of a task has its rank, stage, kind, module, microbatch and item; where the previous batch
/// has fewer items or microbatches the nearest before it serves. Microbatches are matched by number, and also by work
/// (the heaviest with the heaviest). Modes are taken from the like where all of them fit, else the fastest uniform ones
/// that do.
/// Empty where no safe order of microbatches is known, or no task has a like.
/// Pre: `schedule` is a schedule of `previous` that runs. Time O((tasks + edges) log tasks).
[[nodiscard]] std::vector<schedule::Schedule> carry_over(const schedule::Problem& previous,
                                                         const schedule::Schedule& schedule,
                                                         const schedule::Replayer& next);

}  // namespace pipeweaver::search
