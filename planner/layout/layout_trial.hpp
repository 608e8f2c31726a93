// One layout judged without a search: two partitions of it emulated, and what the policies make of them.
#pragma once

#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/planner/layout_choice.hpp"

#include <optional>

namespace pipeweaver::planner {

struct LayoutTrial {
    std::optional<LayoutTried> tried;  ///< none: no partition fits the memory
    /// Then: of the rank that is furthest from fitting, in the partition that is short of the least.
    std::optional<emulator::MemoryShortage> shortage;
    bool settled = false;  ///< judged by all of its replicas; else by the most loaded, and none may take less
};

/// Judges by the most loaded replica, or by all of them. Pre: the layout divides model and cluster. Throws what
/// building its steps throws.
[[nodiscard]] LayoutTrial try_layout(const LayoutRequest& request, const emulator::Layout& layout, bool every_replica);

}  // namespace pipeweaver::planner
