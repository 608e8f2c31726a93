// All bounds of a problem before any search, and what they leave to a search that goes on with them.
#pragma once

#include "pipeweaver/search/bounds.hpp"
#include "search/bounds/one_machine.hpp"

#include <vector>

namespace pipeweaver::search {

struct RootBounds {
    explicit RootBounds(const Flat& flat, BoundEffort effort = BoundEffort::full);

    Tightened windows;       ///< empty of a quick effort
    std::vector<Bound> all;  ///< in the order of lower_bounds()
    Bound best;              ///< the largest, the first of equals

    /// Ranks whose memory is short enough for a price bound (price_bound.hpp) to be worth its time: the one with the
    /// most memory pressure first. Empty: none is.
    std::vector<std::uint32_t> short_of_memory;
};

}  // namespace pipeweaver::search
