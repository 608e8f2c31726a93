// One chain whose first ranks are GPUs of one kind and whose last are of another: which layers each rank gets.
//
// Wanted       the longest stage as short as can be, each as long as its own kind takes for its layers; of such cuts
//              the evenest, by the squares of its stages. Every rank has a layer, and what it must hold under full
//              recomputation (rank_memory.hpp) fits its kind's memory.
// Method       a dynamic program over stages and the layers where they end: exact for the rows that it is given. What
//              passes take in passing depends on the cut; where that is too much, the next leaves it free.
// Units        times in ns, summed over the sample.
#pragma once

#include "pipeweaver/partition/partitioners.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pipeweaver::partition {

/// A stage, and what each layer would take of it.
struct StageRow {
    std::vector<std::int64_t> times;  ///< forward and backward
    std::vector<Bytes> bytes{};       ///< none: they take no room
    Bytes room{};
};

/// Where stages of one row of layers end (exclusive); empty: no cut fits. Pre: all stages have as many times, and
/// bytes for all layers or for none. Time O(stages * layers^2).
[[nodiscard]] std::vector<std::size_t> cut_by_stage(const std::vector<StageRow>& stages);

/// Some ranks of a pipeline, all of one kind of GPU.
struct RanksOfKind {
    const emulator::Setup* setup = nullptr;  ///< in the layout of the whole pipeline
    std::int64_t ranks = 0;
};

struct CutForKinds {
    Partition partition;
    std::int64_t longest = 0;  ///< stage
    std::int64_t all = 0;      ///< stages together
};

/// A stage on each rank. None: of the cuts that were tried, each with less room than the one before, none fits the
/// memory. Pre: the kinds' ranks are those of the layout of both setups, which train one model.
[[nodiscard]] std::optional<CutForKinds> cut_for_kinds(const RanksOfKind& first, const RanksOfKind& last,
                                                       const Sample& sample);

/// Every chain of all modules with a stage on each rank; none: there are more than `most`.
[[nodiscard]] std::vector<Partition> every_cut(const emulator::Setup& setup, std::size_t most);

}  // namespace pipeweaver::partition
