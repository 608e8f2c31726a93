// Cutting a row of weights into contiguous parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::partition {

/// Ends (exclusive) of `parts` contiguous, non-empty parts of `weights` whose largest sum is as small as possible; of
/// such cuts, one whose earlier parts are as full as that allows. Pre: 1 <= parts <= weights.size(), weights >= 0.
[[nodiscard]] std::vector<std::size_t> cut_evenly(std::span<const std::int64_t> weights, std::size_t parts);

}  // namespace pipeweaver::partition
