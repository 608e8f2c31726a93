// A step's microbatches in the order in which rounds take them, and those that are priced.
#pragma once

#include "pipeweaver/workloads/batch.hpp"

#include <cstddef>
#include <vector>

namespace pipeweaver::groups {

struct SortedMicrobatches {
    std::vector<workloads::Microbatch> priced;  ///< the fewest items first
    std::vector<std::size_t> as;                ///< per microbatch of the step, in order: index into `priced`

    std::int64_t count() const { return static_cast<std::int64_t>(as.size()); }

    /// Whether rounds alternate (Pace): both, where microbatches differ.
    std::vector<bool> orders() const { return priced.size() > 1 ? std::vector{false, true} : std::vector{false}; }
};

/// At most `most` are priced; the one with most items and the one with most tokens are. Pre: microbatches, most >= 2.
[[nodiscard]] SortedMicrobatches sorted_microbatches(std::vector<workloads::Microbatch> all, std::size_t most);

}  // namespace pipeweaver::groups
