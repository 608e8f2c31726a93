// Which replica takes which microbatches. Replicas meet at the end of the step: the slowest decides how long it takes.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/partition/partition.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace pipeweaver::partition {

enum class Sharing {
    balanced,  ///< by cost: the largest load as small as it was found to be
    in_turn    ///< replica r takes microbatches r, r + replicas, ...
};

/// The microbatches of each replica, in given order; every one once.
using Shares = std::vector<std::vector<std::size_t>>;

/// Forward and backward of each microbatch through all modules, heads and projectors, without recomputation: the work
/// that the ranks of one replica share.
[[nodiscard]] std::vector<Duration> microbatch_costs(const emulator::Setup& setup,
                                                     const std::vector<workloads::Microbatch>& microbatches,
                                                     const Executor& execute = in_order);

/// Gives microbatch i to replica i % replicas. Pre: replicas >= 1.
[[nodiscard]] Shares in_turn(std::size_t microbatches, std::size_t replicas);

/// Deals the longest processing time first under equal counts (they differ by one at most), then moves and exchanges
/// microbatches between the most loaded replica and one of the 64 least loaded while that makes the larger of the two
/// loads smaller, until the largest load is within a ten-thousandth of the mean. Starts again from in_turn() where that
/// is better, so the largest load is never above in_turn's. Replicas are numbered by count, then by their first
/// microbatch. Pre: replicas >= 1, costs >= 0. Time O(microbatches * log + exchanges * (replicas + 64 * microbatches of
/// a replica)).
[[nodiscard]] Shares balance(std::span<const Duration> costs, std::size_t replicas);

/// Sum of the costs of each share.
[[nodiscard]] std::vector<Duration> loads(const Shares& shares, std::span<const Duration> costs);

}  // namespace pipeweaver::partition
