// Order and cycles of a directed graph; the one place that includes Boost.Graph.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace pipeweaver::schedule {

/// A topological order, or a cycle where there is none. Exactly one of the two is empty unless the graph is.
struct Sorted {
    std::vector<std::uint32_t> order;
    std::vector<std::uint32_t> cycle;  ///< each vertex has an edge to the next, the last to the first
};

/// Sorts the graph of vertices 0 ... vertices-1. Pre: all ends of edges are vertices. Time O(vertices + edges).
[[nodiscard]] Sorted sort_topologically(std::uint32_t vertices,
                                        const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges);

}  // namespace pipeweaver::schedule
