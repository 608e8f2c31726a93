// How large files may be, unzipped.
#pragma once

#include <cstddef>

namespace pipeweaver {

/// Files that people write: models, partitions, recipes, studies.
inline constexpr std::size_t longest_by_hand = std::size_t{16} << 20;

/// Files that programs write: problems, solutions, plans, action lists.
inline constexpr std::size_t longest_by_program = std::size_t{2} << 30;

}  // namespace pipeweaver
