// How TransformerConfig lets layers lie on pipeline ranks, and what is built of them.
#include "launch/rules/layout_text.hpp"
#include "launch/rules/rule.hpp"
#include "pipeweaver/launch/spellings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::launch {

namespace in_pipeline {

namespace {

using L = MegatronLaunch;

constexpr std::string_view config = "megatron/core/transformer/transformer_config.py";
constexpr std::string_view layout_file = "megatron/core/transformer/pipeline_parallel_layer_layout.py";
constexpr std::string_view encoders = "docs/encoders.md, by framework and family";
constexpr std::string_view block = "megatron/core/transformer/transformer_block.py get_num_layers_to_build";

bool says_ends(const L& l) { return l.first || l.last; }
bool accounts(const L& l) { return l.account_for_embedding || l.account_for_loss; }

Why ends_or_accounts(const L& l, std::int64_t) {
    if (!says_ends(l) || !accounts(l)) return std::nullopt;
    return "both are said";
}

Why layout_alone(const L& l, std::int64_t) {
    if (l.layout.empty() || !(says_ends(l) || accounts(l))) return std::nullopt;
    return says_ends(l) ? "layers of the first or last rank are said beside it"
                        : "the embedding or the loss is accounted for beside it";
}

Why layout_parses(const L& l, std::int64_t) {
    if (l.layout.empty()) return std::nullopt;
    auto letters = layout_letters(l.layout);
    if (!letters.why_not.empty()) return letters.why_not;
    if (letters.stages.size() % static_cast<std::size_t>(l.pp) != 0)
        return fmt::format("it has {} stages, {} ranks", letters.stages.size(), l.pp);
    return std::nullopt;
}

Why layout_chunks(const L& l, std::int64_t) {
    if (l.layout.empty() || !l.vpp) return std::nullopt;
    const auto stages = static_cast<std::int64_t>(layout_letters(l.layout).stages.size());
    if (stages % l.pp != 0 || stages / l.pp == *l.vpp) return std::nullopt;
    return fmt::format("it has {} chunks of a rank, {} are said", stages / l.pp, *l.vpp);
}

Why layout_valid(const L& l, std::int64_t) {
    if (l.layout.empty()) return std::nullopt;
    auto letters = layout_letters(l.layout);
    if (!letters.why_not.empty() || letters.stages.size() % static_cast<std::size_t>(l.pp) != 0) return std::nullopt;
    return why_not_constructed(letters.stages, {l.pp, *l.layers, l.mtp_layers.value_or(0)});
}

Why layout_encoder(const L& l, std::int64_t) {
    if (l.layout.empty()) return std::nullopt;
    const auto stages = layout_letters(l.layout).stages;
    const auto found = std::find_if(stages.begin(), stages.end(),
                                    [](const std::string& stage) { return stage.find('e') != std::string::npos; });
    if (found == stages.end()) return std::nullopt;
    return fmt::format("stage {} has one: NotImplementedError", found - stages.begin());
}

Why end_layers(const L& l, std::int64_t) {
    if (!l.layout.empty() || !says_ends(l)) return std::nullopt;
    for (const auto& end : {l.first, l.last}) {
        if (!end) continue;
        if (*end == 0) return "a rank has 0 layers";
        if (l.vpp && *end % *l.vpp != 0) return fmt::format("{} layers in {} chunks", *end, *l.vpp);
    }
    const std::int64_t left = *l.layers - l.first.value_or(0) - l.last.value_or(0);
    const std::int64_t ranks = l.pp - (l.first ? 1 : 0) - (l.last ? 1 : 0);
    if ((left != 0) != (ranks != 0)) return fmt::format("{} layers are left for {} ranks", left, ranks);
    if (ranks != 0 && left % ranks != 0) return fmt::format("{} layers are left for {} ranks", left, ranks);
    if (ranks != 0 && l.vpp && left / ranks % *l.vpp != 0)
        return fmt::format("ranks between have {} layers in {} chunks", left / ranks, *l.vpp);
    return std::nullopt;
}

Why accounted(const L& l, std::int64_t) {
    if (!l.layout.empty() || says_ends(l) || !accounts(l)) return std::nullopt;
    const std::int64_t all = *l.layers + (l.account_for_embedding ? 1 : 0) + (l.account_for_loss ? 1 : 0);
    if (all % l.pp != 0) return fmt::format("{} layers with them on {} ranks", all, l.pp);
    if (l.vpp && all / l.pp % *l.vpp != 0)
        return fmt::format("{} layers of a rank with them in {} chunks", all / l.pp, *l.vpp);
    return std::nullopt;
}

Why built(const L& l, std::int64_t) {
    auto layers = built_layers(l);
    if (layers.why_not.empty()) return std::nullopt;
    return std::move(layers.why_not);
}

// A rank count above the layers leaves negative counts between.
Why not_negative(const L& l, std::int64_t) {
    const auto layers = built_layers(l);
    const auto below = std::find_if(layers.layers.begin(), layers.layers.end(), [](std::int64_t n) { return n < 0; });
    if (!layers.why_not.empty() || below == layers.layers.end()) return std::nullopt;
    return fmt::format("stage {} has {}", below - layers.layers.begin(), *below);
}

// Outputs of a Qwen3-VL-like encoder go into as many first layers.
Why encoder_layers(const L& l, std::int64_t) {
    const auto layers = built_layers(l);
    if (!layers.why_not.empty() || layers.layers.empty() || layers.layers.front() >= l.first_stage_layers)
        return std::nullopt;
    return fmt::format("the first stage has {} layers, the encoder's outputs go into {} ({})", layers.layers.front(),
                       l.first_stage_layers, l.built_source);
}

Why encoder_context(const L& l, std::int64_t) {
    if (l.most_cp == 0 || l.cp <= l.most_cp) return std::nullopt;
    return fmt::format("cp is {}, and nothing parts the sequences of this model: allowed is {} ({})", l.cp, l.most_cp,
                       l.built_source);
}

Why loss_per_token(const L& l, std::int64_t) {
    if (l.dialect != Dialect::bridge_overrides || l.cp == 1 || l.built_source.empty()) return std::nullopt;
    if (l.averages_gradients) return "ddp.average_in_collective is true";
    if (l.asks_loss_per_token && !l.loss_per_token) return "model.calculate_per_token_loss is not true";
    return std::nullopt;
}

}  // namespace

}  // namespace in_pipeline

std::span<const MegatronRule> pipeline_rules() {
    using namespace in_pipeline;
    static const std::array rules{
        MegatronRule{"ends-or-accounts",
                     "layers of the first and last rank go without accounting for the embedding or the loss", config,
                     Phase::configuration, ends_or_accounts},
        MegatronRule{"layout-alone", "a layout goes without layers of the first and last rank and without accounting",
                     config, Phase::configuration, layout_alone},
        MegatronRule{"layout-parses",
                     "a layout is of E, t, m, L, |, commas, x*n and (...)*n, its stages a multiple of pp", layout_file,
                     Phase::configuration, layout_parses},
        MegatronRule{"layout-chunks", "a layout has as many chunks of a rank as are said", config, Phase::configuration,
                     layout_chunks},
        MegatronRule{
            "layout-valid",
            "a layout begins with the one embedding, ends with the one loss, has every layer, and all layers of "
            "multi-token prediction behind them in one last chunk",
            layout_file, Phase::configuration, layout_valid},
        MegatronRule{"layout-encoder", "a layout has no encoder layers", layout_file, Phase::configuration,
                     layout_encoder},
        MegatronRule{
            "end-layers",
            "the first and last rank have layers, the ranks between share the others evenly, and chunks divide "
            "them all",
            config, Phase::configuration, end_layers},
        MegatronRule{"accounted-layers",
                     "with what is accounted for, the layers are a multiple of pp, and those of a rank of its chunks",
                     config, Phase::configuration, accounted},
        MegatronRule{"layers-built", "every rank and chunk has a whole number of layers", block, Phase::build, built},
        MegatronRule{"layers-not-negative", "no stage has fewer than 0 layers", block, Phase::build, not_negative},
        MegatronRule{"loss-per-token",
                     "fine-tuning with context parallelism counts the loss per token and does not average in the "
                     "collective",
                     "Megatron-Bridge 0.6.0 megatron/bridge/training/config.py:1447-1452", Phase::configuration,
                     loss_per_token},
        MegatronRule{"encoder-layers", "the first stage has the layers that outputs of the encoder go into (DeepStack)",
                     encoders, Phase::build, encoder_layers},
        MegatronRule{"encoder-context",
                     "a model with an encoder has no more context parallel groups than it is built "
                     "for",
                     encoders, Phase::step, encoder_context},
    };
    return rules;
}

}  // namespace pipeweaver::launch
