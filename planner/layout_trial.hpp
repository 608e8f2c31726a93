// One layout judged without a search: two partitions of it emulated, and what the policies make of them.
#pragma once

#include "pipeweaver/planner/layout.hpp"

#include <optional>

namespace pipeweaver::planner {

/// The rank that is furthest from fitting.
struct Shortage {
    std::size_t rank = 0;
    Bytes bytes;
};

struct LayoutTrial {
    std::optional<LayoutTried> tried;  ///< nothing: no partition fits the memory
    std::optional<Shortage> shortage;  ///< then: of the partition that is short of the least
    bool settled = false;  ///< judged by all of its replicas; else by the most loaded, and none may take less
};

/// Judges by the most loaded replica, or by all of them. Pre: the layout divides model and cluster. Throws what
/// building its steps throws.
[[nodiscard]] LayoutTrial try_layout(const LayoutRequest& request, const costdb::CostDatabase& costs,
                                     const emulator::Layout& layout, bool every_replica);

}  // namespace pipeweaver::planner
