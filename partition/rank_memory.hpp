// What the ranks of a chain must hold at least, so that a cut can be found that fits them.
//
// Least        what a rank always holds (weights, gradients, optimizer state, workspace, receive buffers), and under
//              full recomputation what 1F1B, or interleaved 1F1B with several chunks, has in flight there when its
//              warm-up ends, microbatches as large as the sample's are on average, and one pass of the largest.
#pragma once

#include "pipeweaver/partition/partitioners.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace pipeweaver::partition {

/// The rank that is furthest from fitting.
struct RankShortage {
    RankId rank{};
    Bytes short_by;
};

class RankMemory {
public:
    /// Keeps a reference to `setup`.
    RankMemory(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);

    /// Per rank of the chain's, which has its stages in a loop.
    [[nodiscard]] std::vector<Bytes> least(const emulator::Chain& chain) const;

    /// None: every rank can hold what it must.
    [[nodiscard]] std::optional<RankShortage> shortage(const emulator::Chain& chain) const;

    /// Of a stage with these layers alone, if it is stage number `stage`: what it always holds and has in flight.
    [[nodiscard]] Bytes of_layers(const emulator::LayerRange& layers, std::size_t stage) const;

    [[nodiscard]] Bytes capacity() const;
    [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(setup_.layout.pp); }

private:
    // Passes of the stage between their forward and their backward when the warm-up ends.
    std::int64_t in_flight(std::size_t stage) const;

    const emulator::Setup& setup_;
    std::int64_t chunks_;
    std::int64_t microbatches_;                        // of a replica
    std::vector<emulator::PassShape> mean_, largest_;  // per module
};

/// Stages of `layers`, each of which takes `times` of it, of which the longest is as short as a search by halves and a
/// fill from the first stage to the last find, and that fit the memory; none: it finds no such. `chain_of` makes a
/// partition of ends (exclusive).
[[nodiscard]] std::optional<Partition> cut_to_fit(
    const RankMemory& memory, const std::vector<emulator::LayerRange>& layers, const std::vector<std::int64_t>& times,
    std::size_t stages, const std::function<Partition(const std::vector<std::size_t>&)>& chain_of);

}  // namespace pipeweaver::partition
