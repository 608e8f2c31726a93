// How many receive buffers of each stage of a chain can be in use at once.
#pragma once

#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <cstdint>
#include <vector>

namespace pipeweaver::emit {

/// Of a stage, in microbatches: those whose activation (or output's gradient) may have come from another rank while
/// their last use, B or W, is still to end. 0 where the neighbour is on the same rank, or there is none.
struct BuffersInUse {
    std::int64_t forward = 0, backward = 0;
};

/// The most of each stage, whatever the passes take and as early as receives are posted: a message may be there as soon
/// as its sender depends on nothing that the receiver has yet to do. A ring of so many buffers is enough, where PyTorch
/// allocates one for each microbatch. Pre: a chain of stages 0, 1, ... as PyTorch runs it; `replay` is of `schedule`
/// and completed. Takes time O(ranks * tasks).
[[nodiscard]] std::vector<BuffersInUse> buffers_in_use(const schedule::Problem& problem,
                                                       const schedule::Schedule& schedule,
                                                       const schedule::Replay& replay);

}  // namespace pipeweaver::emit
