// Chains of one module each, cut anew so that no rank has more to do than it must.
//
// Time         forward and backward of the sample's microbatches, whole, as models are usually trained.
// Memory       what every schedule holds: weights, gradients and optimizer state all the time, and, while the last
//              module works on a microbatch, that microbatch's least in every stage of this module and of those it
//              reads from: of all blocks the input alone (full recomputation). It is taken for the microbatch that
//              needs most. A second microbatch in flight, what a pass takes in passing, workspace and buffers are left
//              out: no cut is refused that a schedule could run, unless it offloads what recomputation keeps.
#pragma once

#include "partition/exact_cut.hpp"
#include "pipeweaver/partition/partitioners.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::partition {

/// A module's layers; times in ns.
struct ModuleRow {
    std::vector<RowLayer> layers;
    Bytes around;  ///< held by one pass besides, in each stage
};

/// Of each module of the model.
[[nodiscard]] std::vector<ModuleRow> module_rows(const emulator::Setup& setup, const Sample& sample);

/// Chains in place of others, and what their fullest rank has to do with each, in ns.
struct LevelChains {
    std::vector<emulator::Chain> chains;
    std::int64_t load = 0, load_before = 0;
};

/// `chains` with the same stages and other counts of layers: first the modules with the longest layers, then the others
/// into what these leave free, then each once more beside all others. None where that takes no thousandth off the
/// fullest rank, or where no cut fits the memory. Pre: chain m is module m, its stages in a loop over all ranks.
[[nodiscard]] std::optional<LevelChains> level_chains(const emulator::Setup& setup, const std::vector<ModuleRow>& rows,
                                                      const std::vector<emulator::Chain>& chains);

}  // namespace pipeweaver::partition
