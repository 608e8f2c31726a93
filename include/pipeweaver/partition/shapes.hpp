// Microbatches of at most so many shapes, for stacks that compile or tune each shape anew.
#pragma once

#include "pipeweaver/workloads/batch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipeweaver::partition {

/// Microbatches padded to shapes: tokens of the backbone, items, and patches of each item, as pad() has them.
struct Shaped {
    std::vector<workloads::Microbatch> microbatches;  ///< in their order
    std::size_t shapes_before = 0, shapes = 0;
    std::int64_t positions_before = 0, positions = 0;  ///< tokens and patches of all
};

/// Parts the microbatches in at most `most` groups, pads each group to its largest and looks for the least positions:
/// the best groups of neighbours in several orders, and from there single exchanges as long as they gain. Exact for
/// microbatches without items of up to 256 shapes; of more, neighbours go together at once, so that 256 are parted.
/// Time O(most * n^2) for n shapes, at most 256, and O(n log n). Pre: most >= 1.
[[nodiscard]] Shaped in_shapes(const std::vector<workloads::Microbatch>& microbatches, std::size_t most);

}  // namespace pipeweaver::partition
