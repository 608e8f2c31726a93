// Passes of a pipeline in traces without a GPU: which of one rank follows which of another.
//
// Names        `PP:<stage><F|B|I|W><microbatch>[.<item>]`, as pipeweaver.torch and PyTorch's pipeline runtime call
//              them; the n-th of a name is of the n-th step.
// Order        a forward follows that of the stage before it, a backward that of the stage behind, of the same
//              microbatch and item.
#pragma once

#include "traces/meetings.hpp"
#include "traces/recording.hpp"

#include <cstdint>
#include <vector>

namespace pipeweaver::traces {

/// `to` takes what `from`, on another rank, has made.
struct Passage {
    Member from, to;
};

[[nodiscard]] std::vector<Passage> passages_of(const Recording& recording);

/// What follows the longest gap between a pass and the one before it on its thread: where its rank waited for what it
/// takes, the first that is done with that.
[[nodiscard]] std::uint32_t behind_the_wait(const Recording& recording, const Member& pass);

}  // namespace pipeweaver::traces
