// The tasks of some ranks as trees: what the price bound (price_bound.hpp) chooses starts for.
#pragma once

#include "search/bounds/one_machine.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::search {

struct PriceForest {
    /// Times are nanoseconds, memory is a part of the rank's room. With modes, each number is the smallest that some
    /// mode that fits allows: of durations, and of what a pair holds while its forward runs, between its tasks, and so
    /// on.
    struct Node {
        std::uint32_t task = 0;
        std::uint32_t rank = 0;  ///< index in the given ranks
        double head = 0, duration = 0;
        double path = 0;  ///< longest through the task: head + duration + tail
        double acquire = 0, release = 0;
        std::uint32_t parent = 0;  ///< node; of a root no meaning
        bool after = false;        ///< runs after its parent; else before it
        double slack = 0;          ///< of the arc to its parent: later head - earlier head - length of the arc
    };

    std::vector<Node> nodes;  ///< tree by tree, parents before their children
    /// Tree t: nodes first[t] ... first[t + 1] - 1.
    std::vector<std::uint32_t> first;

    std::size_t trees() const { return first.size() - 1; }
};

/// Tasks of other ranks count as delays only. Of the arcs that would close a cycle those with the most slack are left
/// out: what remains allows all that the problem allows. Heads and tails are those of `windows`.
[[nodiscard]] PriceForest price_forest(const Flat& flat, const Tightened& windows,
                                       std::span<const std::uint32_t> ranks);

}  // namespace pipeweaver::search
