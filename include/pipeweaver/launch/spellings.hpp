// A split in the flags of frameworks, and flags read back: pure text.
//
//   pipeline layout   Megatron-LM: --pipeline-model-parallel-layout "E|t*14|(t*14|)*5t*14L"
//   first and last    Megatron-LM: --decoder-first-pipeline-num-layers, --decoder-last-pipeline-num-layers
//                     (Megatron-Bridge: num_layers_in_first_pipeline_stage, ms-swift: with underscores)
//   hybrid pattern    Megatron-LM's HybridModel: --hybrid-layer-pattern "*-*-|*-*-"
//   custom layers     LoongForge: --custom-pipeline-layers, --custom-virtual-pipeline-layers
//
// Stages are numbered as Megatron Core numbers them: stage k is chunk k / ranks of pipeline rank k % ranks.
//
// Source       Megatron Core 0.16.1: transformer/pipeline_parallel_layer_layout.py, transformer_block.py,
//              transformer_layer.py, transformer_config.py; Megatron-LM of August 2026: training/arguments.py,
//              core/models/hybrid/hybrid_layer_allocation.py; LoongForge 0.1.1: train/validators.py, utils/utils.py.
#pragma once

#include "pipeweaver/launch/split.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

/// "--name value"; without a value it is a switch.
struct Flag {
    std::string name;
    std::string value{};

    friend bool operator==(const Flag&, const Flag&) = default;
};

/// The flags that say a split, or the rule that keeps a spelling from it.
struct Spelled {
    std::vector<Flag> flags{};  ///< none, and no rule: the framework splits so unasked
    std::string why_not{};      ///< not empty: the rule

    bool says() const { return why_not.empty(); }
};

/// What a text of stages says, in letters of layers; or what is wrong with it.
struct ReadStages {
    std::vector<std::string> stages{};
    std::string why_not{};  ///< not empty: the flag and the place of what is wrong
};

/// What a list of layers says; or what is wrong with it.
struct ReadSplit {
    Split split{};
    std::string why_not{};  ///< not empty: the flag and the rule that the list breaks
};

// --- Megatron-LM's layout string

/// One stage after the other, in letters: E embedding, t decoder layer, m multi-token prediction, L loss.
using LayoutStages = std::vector<std::string>;

/// The layout string, equal stages in a row said once.
[[nodiscard]] Spelled spell_pipeline_layout(const Split& split);

/// Multiplies out what Megatron Core does, in its order: commas go, then (...)*n, then x*n. Wrong is what is none of E,
/// t, m, L, '|', ',', (...)*n, x*n, and more than 100,000 letters.
[[nodiscard]] ReadStages parse_pipeline_layout(const std::string& text);

/// What a layout is built for.
struct LayoutFor {
    std::int64_t ranks = 1;       ///< --pipeline-model-parallel-size
    std::int64_t depth = 0;       ///< --num-layers
    std::int64_t mtp_layers = 0;  ///< --mtp-num-layers
};

/// The first rule of Megatron Core that the stages break, with the stage; none: it constructs them.
[[nodiscard]] std::optional<std::string> why_not_constructed(const LayoutStages& stages, const LayoutFor& wanted);

/// The decoder layers of each stage.
[[nodiscard]] Split split_of(const LayoutStages& stages, std::int64_t ranks);

// --- Layers of the first and the last rank, the others even

struct FirstLast {
    std::optional<std::int64_t> first{}, last{};  ///< layers of a rank, all its chunks; none: as the others
    std::int64_t chunks = 1;                      ///< --num-virtual-stages-per-pipeline-rank

    friend bool operator==(const FirstLast&, const FirstLast&) = default;
};

/// The fewest counts that say the split, or the rule.
struct SpelledFirstLast {
    FirstLast counts{};
    std::string why_not{};
};
[[nodiscard]] SpelledFirstLast first_last_of(const Split& split);

/// Megatron-LM's flags, with --num-virtual-stages-per-pipeline-rank where there are chunks.
[[nodiscard]] Spelled spell_first_last(const Split& split);

/// The same as ms-swift has them.
[[nodiscard]] Spelled spell_first_last_swift(const Split& split);

/// The split of `wanted.depth` layers that Megatron Core builds from the counts. Throws Error{input} with the rule
/// where it refuses them: 0 layers, ranks between that have none or cannot share them evenly, chunks that do not
/// divide.
[[nodiscard]] Split split_of(const FirstLast& counts, const LayoutFor& wanted);

// --- HybridModel's pattern

/// `letters`: of each layer of the language model, in HybridModel's own: * attention, + latent attention, M Mamba, G
/// gated delta net, - feed-forward, E mixture of experts; a transformer layer has two, "*-". Pre: one text per layer.
[[nodiscard]] Spelled spell_hybrid_pattern(const Split& split, const std::vector<std::string>& letters);

/// The letters of each stage; what follows '/' (multi-token prediction) is left out. Wrong is what is no letter.
[[nodiscard]] ReadStages parse_hybrid_pattern(const std::string& text);

/// Stages of so many layers. Throws Error{input} where a stage ends inside a layer, or the letters are others.
[[nodiscard]] Split split_of(const std::vector<std::string>& stages, const std::vector<std::string>& letters,
                             std::int64_t ranks);

/// The letters of a network's layers; none: HybridModel has no letter for one of them (cross or factored attention).
[[nodiscard]] std::optional<std::vector<std::string>> hybrid_letters(const workloads::Architecture& architecture);

// --- LoongForge

/// --custom-pipeline-layers, and where the chunks of a rank are not those that it makes of its layers,
/// --custom-virtual-pipeline-layers.
[[nodiscard]] Spelled spell_custom_layers(const Split& split);

/// Layers of each rank, shared out among `chunks`: the later ones get the rest. Wrong is what is no list of whole
/// numbers, fewer layers than chunks, and one rank alone.
[[nodiscard]] ReadSplit parse_custom_layers(const std::string& text, std::int64_t chunks);

/// Layers of each stage. Wrong is what is no list of two whole numbers and more, and a number of stages that is no
/// multiple of `ranks`.
[[nodiscard]] ReadSplit parse_custom_virtual_layers(const std::string& text, std::int64_t ranks);

}  // namespace pipeweaver::launch
