// What of a stage's activations is not kept for the backward. Each recomputation is a row of recompute.cpp: what it is
// called, who may choose it, and how many blocks it computes again. One of whole blocks needs no more than that row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emulator {

struct RecomputeRow {
    std::string_view name;       ///< of one with a number, what stands before it: "blocks:"
    bool has_number = false;     ///< Recompute::layers is said behind the name
    bool for_plans = true;       ///< passes may choose it, and executors know it; else whole steps have it alone
    bool repeats_parts = false;  ///< parts of blocks run again, not blocks from their inputs on
    bool copies = false;         ///< nothing runs again: what is kept goes over the link to the host and back

    /// How many of `count` blocks of the backbone, or of another module, are recomputed, in part or whole; `n` is
    /// Recompute::layers.
    std::int64_t (*layers)(std::int64_t count, std::int64_t n, bool of_backbone) = nullptr;

    static const RecomputeRow none, half, full, selective, second_products, core_attention, offload, blocks, encoders,
        backbone;
};

/// What of a stage's activations is not kept for the backward, in the words of Megatron-LM:
///
///   none        nothing is computed again
///   selective   outputs of norms and activation functions are (--recompute-modules layernorm, moe_act, ...)
///   second-products  besides, every second product of a block is: keys, the attention's output, and the half of a
///               gated up projection that no activation follows. torchtitan's selective checkpointing by operators,
///               which keeps what attention and reduce-scatters give and of the products queries, keys, values,
///               output, gate, up, down the first, third, ... (torchtitan/distributed/activation_checkpoint.py of 2024
///               to 2026). Of experts' products (torchtitan may run all of them again), of compressed and linear
///               attention and of diffusion transformers it is `selective`
///   core-attention  attention itself is, from queries, keys and values (core_attn): of fused attention nothing more is
///               left out than it leaves out on its own
///   half        of half of the blocks, rounded up, only the input is kept: they are computed again
///   blocks(n)   of the first n blocks only the input is kept (--recompute-method block --recompute-num-layers n)
///   full        of all blocks only the input is kept (--recompute-method uniform --recompute-num-layers 1)
///   encoders    full in all modules but the backbone, none in it (Hugging Face's vit_gradient_checkpointing alone)
///   backbone    full in the backbone, none in the others
///   offload     all goes to the host's memory while the next block runs, and comes back a block ahead. A pass ends
///               when its copies have: a GPU's link to its host carries those of one pass at a time
///
/// `n` counts in each part of a stage, that is, for each module in each virtual stage on its own; of a part with n
/// blocks or fewer it is `full`. The uniform method with groups of several layers keeps fewer inputs than `full` and is
/// not here.
struct Recompute {
    enum class Kind : std::uint8_t {
        none,
        half,
        full,
        selective,
        second_products,
        core_attention,
        offload,
        blocks,
        encoders,
        backbone
    };

    Kind kind = Kind::none;   ///< what frameworks and prices of parts know it by
    std::int64_t layers = 0;  ///< of `blocks`: n
    const RecomputeRow* row = &RecomputeRow::none;

    static const Recompute none, half, full, selective, second_products, core_attention, offload, encoders, backbone;

    /// Pre: n >= 0; with 0 nothing is computed again.
    static constexpr Recompute blocks(std::int64_t n) { return {Kind::blocks, n, &RecomputeRow::blocks}; }

    /// Whether parts of blocks run again, not blocks from their inputs on.
    bool repeats_parts() const { return row->repeats_parts; }

    /// Whether activations are copied to the host and back.
    bool copies() const { return row->copies; }

    friend bool operator==(const Recompute&, const Recompute&) = default;
};

inline constexpr Recompute Recompute::none{Kind::none, 0, &RecomputeRow::none};
inline constexpr Recompute Recompute::half{Kind::half, 0, &RecomputeRow::half};
inline constexpr Recompute Recompute::full{Kind::full, 0, &RecomputeRow::full};
inline constexpr Recompute Recompute::selective{Kind::selective, 0, &RecomputeRow::selective};
inline constexpr Recompute Recompute::second_products{Kind::second_products, 0, &RecomputeRow::second_products};
inline constexpr Recompute Recompute::core_attention{Kind::core_attention, 0, &RecomputeRow::core_attention};
inline constexpr Recompute Recompute::offload{Kind::offload, 0, &RecomputeRow::offload};
inline constexpr Recompute Recompute::encoders{Kind::encoders, 0, &RecomputeRow::encoders};
inline constexpr Recompute Recompute::backbone{Kind::backbone, 0, &RecomputeRow::backbone};

/// What a pass may choose from unless a partition says otherwise.
[[nodiscard]] inline std::vector<Recompute> usual_modes() {
    return {Recompute::none, Recompute::half, Recompute::full};
}

/// "none", "half", "full", "selective", "second-products", "core-attention", "offload", "encoders", "backbone", or
/// "blocks:3".
[[nodiscard]] std::string name_of(Recompute recompute);

/// The setting of that name; nothing for other texts, "blocks:0" among them.
[[nodiscard]] std::optional<Recompute> recompute_named(std::string_view name);

/// The names that have no number in them, and "blocks:N".
[[nodiscard]] std::vector<std::string> recompute_names();

/// Whether passes of plans may choose the setting and executors know it: all but second-products, core-attention,
/// encoders and backbone, which are of whole steps, launched or emulated.
[[nodiscard]] inline bool is_for_plans(Recompute recompute) { return recompute.row->for_plans; }

/// How many of `count` blocks of a module are recomputed, in part or whole: the backbone's, or another's.
[[nodiscard]] inline std::int64_t recomputed_layers(std::int64_t count, Recompute recompute, bool of_backbone = true) {
    return recompute.row->layers(count, recompute.layers, of_backbone);
}

}  // namespace pipeweaver::emulator
