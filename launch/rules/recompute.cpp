// What TransformerConfig lets be computed again or offloaded.
#include "launch/rules/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::launch {

namespace in_recompute {

namespace {

using L = MegatronLaunch;

constexpr std::string_view config = "megatron/core/transformer/transformer_config.py";

bool has(const std::vector<std::string>& all, std::string_view one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

// The first of `all` that is not among `allowed`.
template <std::size_t n>
Why other_than(const std::vector<std::string>& all, const std::array<std::string_view, n>& allowed) {
    for (const std::string& one : all)
        if (std::find(allowed.begin(), allowed.end(), one) == allowed.end()) return fmt::format("'{}' is none", one);
    return std::nullopt;
}

Why full_method(const L& l, std::int64_t) {
    if (l.recompute != "full" || !l.recompute_method.empty()) return std::nullopt;
    return "no method is said";
}

Why full_layers(const L& l, std::int64_t) {
    if (l.recompute != "full" || l.recompute_layers || !l.custom_recompute_layers.empty()) return std::nullopt;
    return "no number of layers is said";
}

Why selective_layers(const L& l, std::int64_t) {
    if (l.recompute != "selective" || !l.recompute_layers) return std::nullopt;
    return fmt::format("{} layers are said", *l.recompute_layers);
}

Why saved_by_sequence(const L& l, std::int64_t) {
    if (l.recompute.empty() || !l.distribute_saved || !l.sequence_parallel) return std::nullopt;
    return "both are said";
}

constexpr std::array<std::string_view, 7> modules_016{"core_attn", "moe_act", "layernorm",     "mla_up_proj",
                                                      "mlp",       "moe",     "shared_experts"};
constexpr std::array<std::string_view, 11> modules_020{
    "core_attn",      "moe_act",      "layernorm",   "mla_up_proj", "mlp", "moe",
    "shared_experts", "gdn_norm_out", "gdp_in_proj", "gdp_qkv",     "mhc"};

constexpr std::array<std::string_view, 8> modules_019{"core_attn", "moe_act", "layernorm",      "mla_up_proj",
                                                      "mlp",       "moe",     "shared_experts", "gdn_norm_out"};

Why known_016(const L& l, std::int64_t) {
    return l.recompute == "selective" ? other_than(l.recompute_modules, modules_016) : std::nullopt;
}
Why known_019(const L& l, std::int64_t) {
    return l.recompute == "selective" ? other_than(l.recompute_modules, modules_019) : std::nullopt;
}
Why known_020(const L& l, std::int64_t) {
    return l.recompute == "selective" ? other_than(l.recompute_modules, modules_020) : std::nullopt;
}

Why grouped(const L& l, std::int64_t) {
    if (l.recompute != "selective" || !has(l.recompute_modules, "moe_act") || l.grouped_gemm) return std::nullopt;
    return "the grouped GEMM is not said";
}

Why latent(const L& l, std::int64_t) {
    if (l.recompute != "selective" || !has(l.recompute_modules, "mla_up_proj") || l.latent_attention)
        return std::nullopt;
    return "attention is not latent";
}

Why shared(const L& l, std::int64_t) {
    const bool again = l.recompute == "selective" && has(l.recompute_modules, "shared_experts");
    if (!again || !l.shared_ffn || !l.shared_overlap) return std::nullopt;
    return "they are overlapped";
}

Why moe_layer(const L& l, std::int64_t) {
    if (!l.recompute_moe_layer || l.recompute != "full") return std::nullopt;
    return "full recomputation is said, too";
}

constexpr std::array<std::string_view, 7> offloaded{"core_attn", "attn_proj", "expert_fc1", "moe_act",
                                                    "attn_norm", "mlp_norm",  "qkv_linear"};

Why fine_offload(const L& l, std::int64_t) {
    if (!l.fine_offload) return std::nullopt;
    if (l.offload_layers > 0) return "whole layers are offloaded, too";
    if (l.offload_modules.empty()) return "no modules are said";
    if (auto none = other_than(l.offload_modules, offloaded)) return none;
    if (has(l.offload_modules, "attn_proj") && !has(l.offload_modules, "core_attn"))
        return "attn_proj is said without core_attn";
    return std::nullopt;
}

}  // namespace

}  // namespace in_recompute

std::span<const MegatronRule> recompute_rules() {
    using namespace in_recompute;
    static const std::array rules{
        MegatronRule{"full-method", "full recomputation has a method, uniform or block", config, Phase::configuration,
                     full_method},
        MegatronRule{"full-layers", "full recomputation has a number of layers", config, Phase::configuration,
                     full_layers},
        MegatronRule{"selective-layers", "selective recomputation has no number of layers", config,
                     Phase::configuration, selective_layers},
        MegatronRule{"saved-or-sequence", "saved activations are not distributed with sequence parallelism", config,
                     Phase::configuration, saved_by_sequence},
        MegatronRule{
            "recompute-modules",
            "selective recomputation is of core_attn, moe_act, layernorm, mla_up_proj, mlp, moe and shared_experts",
            config, Phase::configuration, known_016, to_018},
        MegatronRule{
            "recompute-modules",
            "selective recomputation is of core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts and "
            "gdn_norm_out",
            config, Phase::configuration, known_019, of_019},
        MegatronRule{
            "recompute-modules",
            "selective recomputation is of core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts, "
            "gdn_norm_out, gdp_in_proj, gdp_qkv and mhc",
            config, Phase::configuration, known_020, of_020},
        MegatronRule{"recompute-moe-act", "experts' activations are computed again with the grouped GEMM alone", config,
                     Phase::configuration, grouped},
        MegatronRule{"recompute-latent", "mla_up_proj is computed again in latent attention alone", config,
                     Phase::configuration, latent},
        MegatronRule{"recompute-shared", "overlapped shared experts are not computed again", config,
                     Phase::configuration, shared},
        MegatronRule{"recompute-moe-layer", "--moe-layer-recompute goes without full recomputation", config,
                     Phase::configuration, moe_layer},
        MegatronRule{"fine-offload",
                     "fine-grained offloading names known modules, attn_proj with core_attn, and no whole layers",
                     config, Phase::configuration, fine_offload},
    };
    return rules;
}

}  // namespace pipeweaver::launch
