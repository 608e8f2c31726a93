// Schedules replayed under costs that are wrong by their own error estimates; robustness.hpp says how they are drawn.
#pragma once

#include "pipeweaver/planner/robustness.hpp"

namespace pipeweaver::planner {

/// Which draws of the endless row that a seed gives. Sets that do not overlap are independent.
struct Draws {
    int first = 0;
    int count = perturbed_replays;
};

/// Per draw, the makespan of each side: of its slowest replica. All sides meet the same factors; their spread is that
/// of all sides' costs together.
[[nodiscard]] std::vector<std::vector<Duration>> perturbed_makespans(std::span<const Side> sides, std::uint64_t seed,
                                                                     const Draws& draws, const Executor& execute);

}  // namespace pipeweaver::planner
