// How many groups a ring of nodes has: a walk around it that meets each node once, free or faulty.
#pragma once

#include "pipeweaver/capacity/faults.hpp"

#include <optional>

namespace pipeweaver::capacity {

/// Exact; nothing where the walk has too many states to be taken in a second or two. Pre: a ring, answerable.
[[nodiscard]] std::optional<GroupCounts> groups_of_ring(const FaultCase& asked);

}  // namespace pipeweaver::capacity
