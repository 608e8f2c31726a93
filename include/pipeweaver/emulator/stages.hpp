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

/// What of a stage's activations is not kept for the backward, in the words of Megatron-LM:
///
///   none        nothing is computed again
///   selective   outputs of norms and activation functions are (--recompute-modules layernorm, moe_act, ...)
///   core-attention  attention itself is, from queries, keys and values (core_attn): of fused attention nothing more is
///               left out than it leaves out on its own
///   half        of half of the blocks, rounded up, only the input is kept: they are computed again
///   blocks(n)   of the first n blocks only the input is kept (--recompute-method block --recompute-num-layers n)
///   full        of all blocks only the input is kept (--recompute-method uniform --recompute-num-layers 1)
///   encoders    full in all modules but the backbone, none in it (Hugging Face's vit_gradient_checkpointing alone)
///   backbone    full in the backbone, none in the others
///   offload     all goes to the host's memory while the next block runs, and comes back a block ahead
///
/// `n` counts in each part of a stage, that is, for each module in each virtual stage on its own; of a part with n
/// blocks or fewer it is `full`. The uniform method with groups of several layers keeps fewer inputs than `full` and is
/// not here.
struct Recompute {
    enum class Kind : std::uint8_t { none, half, full, selective, core_attention, offload, blocks, encoders, backbone };

    Kind kind = Kind::none;
    std::int64_t layers = 0;  ///< of `blocks`: n

    static const Recompute none, half, full, selective, core_attention, offload, encoders, backbone;

    /// Pre: n >= 0; with 0 nothing is computed again.
    static constexpr Recompute blocks(std::int64_t n) { return {Kind::blocks, n}; }

    /// Whether parts of blocks run again, not blocks from their inputs on.
    constexpr bool repeats_parts() const { return kind == Kind::selective || kind == Kind::core_attention; }

    friend bool operator==(const Recompute&, const Recompute&) = default;
};

inline constexpr Recompute Recompute::none{Kind::none, 0};
inline constexpr Recompute Recompute::half{Kind::half, 0};
inline constexpr Recompute Recompute::full{Kind::full, 0};
inline constexpr Recompute Recompute::selective{Kind::selective, 0};
inline constexpr Recompute Recompute::core_attention{Kind::core_attention, 0};
inline constexpr Recompute Recompute::offload{Kind::offload, 0};
inline constexpr Recompute Recompute::encoders{Kind::encoders, 0};
inline constexpr Recompute Recompute::backbone{Kind::backbone, 0};

/// What a pass may choose from unless a partition says otherwise.
[[nodiscard]] inline std::vector<Recompute> usual_modes() {
    return {Recompute::none, Recompute::half, Recompute::full};
}

/// "none", "half", "full", "selective", "core-attention", "offload", "encoders", "backbone", or "blocks:3".
[[nodiscard]] std::string name_of(Recompute recompute);

/// The setting of that name; nothing for other texts, "blocks:0" among them.
[[nodiscard]] std::optional<Recompute> recompute_named(std::string_view name);

/// The names that have no number in them, and "blocks:N".
[[nodiscard]] std::vector<std::string> recompute_names();

/// Whether plans and their executors know the setting: all but offload, core-attention, encoders and backbone, which
/// steps are emulated with.
[[nodiscard]] bool is_for_plans(Recompute recompute);

/// How many of `count` blocks of a module are recomputed, in part or whole: the backbone's, or another's.
[[nodiscard]] std::int64_t recomputed_layers(std::int64_t count, Recompute recompute, bool of_backbone = true);
[[nodiscard]] std::int64_t recomputed_layers(const workloads::Model& model, const LayerRange& part,
                                             Recompute recompute);

}  // namespace pipeweaver::emulator
