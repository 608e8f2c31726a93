// Choices of memory modes for all pairs at once.
#pragma once

#include "search/instance/flat.hpp"

#include <vector>

namespace pipeweaver::search {

/// Whether some pair has a choice of them.
[[nodiscard]] bool has_modes(const Flat& flat);

/// Of all tasks of a pair in this mode.
[[nodiscard]] std::int64_t time_of(const schedule::Mode& mode);

/// Mode indexes from the smallest total time of these pairs (a pair with fewer modes takes its last) to the largest,
/// ties by index. None without pairs.
[[nodiscard]] std::vector<std::uint32_t> modes_by_time(std::span<const schedule::Pair* const> pairs);

/// The mode that a pair takes when `mode` is asked for.
[[nodiscard]] std::uint32_t mode_of(const schedule::Pair& pair, std::uint32_t mode);

/// One mode index for all pairs (a pair with fewer modes takes its last), the choice with the smallest total time
/// first, ties by index. One empty choice for a problem without pairs.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> uniform_modes(const Flat& flat);

/// Per pair the mode that holds least between forward and backward, and the mode whose own peak is smallest; ties by
/// time, then index. What may still fit where no uniform choice does.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> frugal_modes(const Flat& flat);

}  // namespace pipeweaver::search
