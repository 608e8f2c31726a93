// Choices of memory modes for all pairs at once.
#pragma once

#include "search/instance/flat.hpp"

#include <vector>

namespace pipeweaver::search {

/// One mode index for all pairs (a pair with fewer modes takes its last), the choice with the smallest total time
/// first, ties by index. One empty choice for a problem without pairs.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> uniform_modes(const Flat& flat);

/// Per pair the mode that holds least between forward and backward, and the mode whose own peak is smallest; ties by
/// time, then index. What may still fit where no uniform choice does.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> frugal_modes(const Flat& flat);

}  // namespace pipeweaver::search
