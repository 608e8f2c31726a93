// How large files may be, unzipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace pipeweaver {

/// Files that people write: models, partitions, recipes, studies.
inline constexpr std::size_t longest_by_hand = std::size_t{16} << 20;

/// Files that programs write: problems, solutions, plans, action lists.
inline constexpr std::size_t longest_by_program = std::size_t{2} << 30;

/// Any file: what 32 bits can count, which are all that some platforms have.
inline constexpr std::size_t longest_of_any = std::numeric_limits<std::uint32_t>::max();

}  // namespace pipeweaver
