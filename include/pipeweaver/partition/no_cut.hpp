// Whether any cut of a model into one chain fits the ranks' memory, and what would help where none does.
#pragma once

#include "pipeweaver/partition/partitioners.hpp"

#include <optional>
#include <string>

namespace pipeweaver::partition {

/// The cut that comes nearest to fitting, where none fits.
struct NoCut {
    std::int64_t ranks = 0;
    RankId rank{};       ///< the one that is furthest from fitting
    Bytes always;        ///< weights, gradients and optimizer state of its layers
    Bytes held;          ///< of the microbatch that needs most, with every block recomputed
    Bytes capacity;      ///< of each rank
    std::string change;  ///< an option that would do, in words; empty: none of those that were tried

    Bytes short_by() const { return always + held - capacity; }

    /// Ranks, bytes and what would help: what a user is told.
    [[nodiscard]] std::string text() const;
};

/// Counts what every schedule holds (level_chains.hpp), so where it says so, no order of one chain's passes fits. Tried
/// are all cuts into 1, 2, 4 and 8 chunks a rank; of changes a smaller headroom, then ZeRO 1 in place of 0. None: a cut
/// fits by these counts.
[[nodiscard]] std::optional<NoCut> why_no_cut_fits(const emulator::Setup& setup, const Sample& sample);

}  // namespace pipeweaver::partition
