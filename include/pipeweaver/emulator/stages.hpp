// What a model is cut into, and a batch: stages of layers in chains, and the units of work that pass them.
//
// A chain is a row of stages that a unit of work passes one after the other: a whole model for Megatron-like
// partitions, one module for modality-aware ones. A unit is what one pass takes: a microbatch, or some of its items.
//
//   chain vit   rank 0: layers 0-15    rank 1: layers 16-31                     units: 2 images each
//   chain llm   rank 0: layers 0-7     rank 1: layers 8-15    rank 0: 16-23 ... units: whole microbatches
#pragma once

#include "pipeweaver/base/ids.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/emulator/recompute.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emulator {

/// Consecutive layers of one module.
struct LayerRange {
    std::size_t module = 0;  ///< index into Model::modules
    std::int64_t first = 0;
    std::int64_t count = 0;
};

/// The layers of one stage, on one rank.
struct StageLayers {
    RankId rank{};
    std::vector<LayerRange> parts;
};

/// Stages that a unit passes in this order.
struct Chain {
    std::string name;                 ///< of its tasks' module field
    std::vector<StageLayers> stages;  ///< numbered on from the chain before
};

/// Whether weights of the part are trained: those of its layers, or of a projector after the module's last layer.
[[nodiscard]] bool trains(const workloads::Model& model, const LayerRange& part);

/// What one pass through a chain takes; of a module that no chain has one item.
struct Unit {
    std::vector<PassShape> shapes;   ///< per module of the model; no lengths: no work in that module
    std::vector<std::size_t> items;  ///< indices into Microbatch::items
};

/// What of it holds for a module's blocks: encoders may be recomputed in a way of their own (Built::recompute).
[[nodiscard]] Recompute recompute_in(const workloads::Model& model, std::size_t module, Recompute recompute);

/// How many blocks of the part are recomputed, in part or whole.
[[nodiscard]] std::int64_t recomputed_layers(const workloads::Model& model, const LayerRange& part,
                                             Recompute recompute);

}  // namespace pipeweaver::emulator
