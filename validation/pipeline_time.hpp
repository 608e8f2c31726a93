// How long a pipeline of unequal ranks takes.
#pragma once

#include <cstdint>
#include <span>

namespace pipeweaver::validation {

/// 1F1B, interleaved where virtual_stages v > 1 (Narayanan et al., arXiv 2104.04473, section 2.2): the slowest rank
/// works on all M microbatches, and the others' time of one microbatch passes once at the ends, divided by v:
/// M max + (sum - max) / v + (M + p - 1) v transfer. `rank_ns` is a microbatch's forward and backward on each rank,
/// `transfer_ns` what sending an activation and its gradient adds. Pre: at least one rank.
[[nodiscard]] double pipeline_ns(std::span<const double> rank_ns, std::int64_t microbatches,
                                 std::int64_t virtual_stages, double transfer_ns = 0);

/// Fourth-power mean of two streams' times: near the longer one where one rules, above it where both are busy, because
/// neither is always the longer. What the host launches and what the GPU runs, for instance.
[[nodiscard]] double longer_of(double one_ns, double other_ns);

}  // namespace pipeweaver::validation
