// Clocks of ranks, aligned by the messages between them.
//
// Method       A message cannot arrive before it was sent. So each one bounds how far the sender's clock is ahead of
//              the receiver's from one side, and messages both ways bound it from both. Bounds add up along paths
//              between ranks (shortest paths over all pairs); the offset is the middle of what is left, and half of its
//              width the uncertainty. The true offset is never further off than that.
// One side     Where messages go one way alone, nothing bounds the other side: the quickest message is taken to have
//              needed no time, and no uncertainty is stated.
// Drift        Clocks are taken to run at one speed during a step. Where messages contradict each other, every bound is
//              loosened by as little as makes them agree, which is told.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::measured {

/// What one rank sent and another took, each by its own clock.
struct Message {
    std::size_t from = 0, to = 0;
    Duration sent{}, arrived{};
};

struct Clocks {
    std::size_t reference = 0;                         ///< the rank whose clock all others are brought to
    std::vector<Duration> offset;                      ///< per rank: what is added to its times
    std::vector<std::optional<Duration>> uncertainty;  ///< per rank, beside the reference; none: not bounded
    Duration loosened{};                               ///< how far messages contradict each other; 0: they agree
};

/// Aligns the clocks of that many ranks. Pre: from and to of messages are below `ranks`. Time O(ranks^3 + messages).
[[nodiscard]] Clocks align(std::size_t ranks, std::span<const Message> messages);

}  // namespace pipeweaver::measured
