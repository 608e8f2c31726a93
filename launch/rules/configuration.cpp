// Process groups, and what ModelParallelConfig and TransformerConfig require of sizes and precisions.
#include "launch/rules/rule.hpp"

#include <fmt/format.h>

#include <array>

namespace pipeweaver::launch {

namespace in_configuration {

namespace {

using L = MegatronLaunch;

constexpr std::string_view groups = "megatron/core/parallel_state.py initialize_model_parallel";
constexpr std::string_view config = "megatron/core/transformer/transformer_config.py";
constexpr std::string_view parallel_config = "megatron/core/model_parallel_config.py";

Why world(const L& l, std::int64_t gpus) {
    if (l.dp(gpus) > 0) return std::nullopt;
    return fmt::format("{} GPUs are no multiple of tp {} x pp {} x cp {} = {}", gpus, l.tp, l.pp, l.cp,
                       l.tp * l.pp * l.cp);
}

Why interleaved(const L& l, std::int64_t) {
    if (!l.vpp || l.pp > 1) return std::nullopt;
    return fmt::format("{} chunks on one rank", *l.vpp);
}

Why expert_world(const L& l, std::int64_t gpus) {
    const std::int64_t together = *l.etp * l.ep * l.pp;
    if (gpus % together == 0) return std::nullopt;
    return fmt::format("{} GPUs are no multiple of etp {} x ep {} x pp {} = {}", gpus, *l.etp, l.ep, l.pp, together);
}

Why instances(const L& l, std::int64_t gpus) {
    if (l.dp(gpus) * l.cp % l.optimizer_instances == 0) return std::nullopt;
    return fmt::format("dp {} x cp {} in {} instances", l.dp(gpus), l.cp, l.optimizer_instances);
}

Why sequence_parallel(const L& l, std::int64_t) {
    if (!l.sequence_parallel || l.tp > 1) return std::nullopt;
    return "the tensor parallel size is 1";
}

Why deferred_embedding(const L& l, std::int64_t) {
    if (!l.defer_embedding_wgrad) return std::nullopt;
    if (l.pp == 1) return "the pipeline parallel size is 1";
    if (!l.fused_accumulation) return "gradient accumulation is not fused";
    return std::nullopt;
}

Why warmup_flush(const L& l, std::int64_t) {
    if (!l.overlap_p2p_warmup_flush || (l.overlap_p2p && !l.batch_p2p)) return std::nullopt;
    return "P2P traffic is not overlapped, which takes chunks";
}

Why one_precision(const L& l, std::int64_t) {
    if (l.fp16 && l.bf16) return "both are said";
    return std::nullopt;
}

Why heads(const L& l, std::int64_t) {
    if (*l.heads % l.tp == 0) return std::nullopt;
    return fmt::format("{} heads, tp {}", *l.heads, l.tp);
}

Why query_groups(const L& l, std::int64_t) {
    if (*l.groups % l.tp == 0 || l.tp % *l.groups == 0) return std::nullopt;
    return fmt::format("{} groups, tp {}", *l.groups, l.tp);
}

Why state_heads(const L& l, std::int64_t) {
    if (!l.state_groups || (*l.state_groups % l.tp == 0 && *l.state_heads % l.tp == 0)) return std::nullopt;
    return fmt::format("{} groups, {} heads, tp {}", *l.state_groups, *l.state_heads, l.tp);
}

Why variant_016(const L& l, std::int64_t) {
    if (l.attention_variant != "gdn" && l.attention_variant != "gdn2") return std::nullopt;
    return fmt::format("it is {}", l.attention_variant);
}

// What all versions ask of sizes.
Why delta_sizes(const L& l) {
    if (!l.linear_kernel || !l.linear_key_dim || !l.linear_value_dim || !l.linear_key_heads || !l.linear_value_heads)
        return "a size of linear attention is not said";
    if (*l.linear_value_heads % *l.linear_key_heads != 0)
        return fmt::format("{} value heads, {} key heads", *l.linear_value_heads, *l.linear_key_heads);
    return std::nullopt;
}

Why delta_nets_016(const L& l, std::int64_t) {
    if (l.attention_variant != "gated_delta_net") return std::nullopt;
    if (l.linear_freq.empty()) return "the frequency of linear attention is not said";
    if (auto why = delta_sizes(l)) return why;
    if (*l.linear_key_heads % l.tp != 0) return fmt::format("{} key heads, tp {}", *l.linear_key_heads, l.tp);
    if (l.cp != 1) return fmt::format("cp is {}, allowed is 1", l.cp);
    return std::nullopt;
}

Why delta_nets_020(const L& l, std::int64_t) {
    if (l.attention_variant.empty() || l.attention_variant == "dsa") return std::nullopt;
    if (l.linear_freq.empty() && l.attention_variant != "gdn2") return "the frequency of linear attention is not said";
    if (auto why = delta_sizes(l)) return why;
    const std::int64_t together = l.tp * l.cp;
    if (*l.linear_key_heads % together == 0 && *l.linear_value_heads % together == 0) return std::nullopt;
    return fmt::format("{} key heads, {} value heads, tp {} x cp {}", *l.linear_key_heads, *l.linear_value_heads, l.tp,
                       l.cp);
}

Why delta_nets_018(const L& l, std::int64_t gpus) {
    return l.attention_variant == "gated_delta_net" ? delta_nets_020(l, gpus) : std::nullopt;
}

Why sparse_attention(const L& l, std::int64_t) {
    if (l.attention_variant != "dsa" || l.cp == 1) return std::nullopt;
    return fmt::format("cp is {}", l.cp);
}

Why offload(const L& l, std::int64_t) {
    if (l.offload_layers == 0) return std::nullopt;
    if (l.offload_layers >= *l.layers) return fmt::format("{} layers of {}", l.offload_layers, *l.layers);
    if (l.pp > 1) return fmt::format("the pipeline parallel size is {}", l.pp);
    if (!l.recompute.empty()) return "activations are recomputed";
    return std::nullopt;
}

// Of the arguments alone: an override cannot say the activation function.
Why fused_activation(const L& l, std::int64_t) {
    if (l.dialect != Dialect::megatron_arguments || l.swiglu || !l.gelu_fusion || !l.squared_relu) return std::nullopt;
    return "--squared-relu is said without --no-bias-gelu-fusion";
}

}  // namespace

}  // namespace in_configuration

std::span<const MegatronRule> configuration_rules() {
    using namespace in_configuration;
    static const std::array rules{
        MegatronRule{"groups-world", "the GPUs are a multiple of tp x pp x cp", groups, Phase::groups, world},
        MegatronRule{"groups-chunks", "chunks need 2 pipeline ranks and more", groups, Phase::groups, interleaved},
        MegatronRule{"groups-experts", "the GPUs are a multiple of etp x ep x pp", groups, Phase::groups, expert_world},
        MegatronRule{"groups-instances", "the distributed optimizer's instances divide dp x cp", groups, Phase::groups,
                     instances},
        MegatronRule{"sequence-parallel", "sequence parallelism goes with tensor parallelism", parallel_config,
                     Phase::configuration, sequence_parallel},
        MegatronRule{"deferred-embedding",
                     "the embedding's weight gradient is deferred with a pipeline and fused accumulation alone",
                     parallel_config, Phase::configuration, deferred_embedding},
        MegatronRule{"p2p-warmup-flush", "P2P overlapped in warm-up and flush goes with overlapped, not batched P2P",
                     parallel_config, Phase::configuration, warmup_flush},
        MegatronRule{"config-precision", "bf16 or fp16, not both", config, Phase::configuration, one_precision},
        MegatronRule{"heads-by-tp", "the attention heads are a multiple of tp", config, Phase::configuration, heads},
        MegatronRule{"groups-by-tp", "the query groups are a multiple or a divisor of tp", config, Phase::configuration,
                     query_groups},
        MegatronRule{
            "delta-nets",
            "gated delta nets say all their sizes; value heads are a multiple of key heads, these of tp; cp is 1",
            config, Phase::configuration, delta_nets_016, to_017},
        MegatronRule{
            "delta-nets",
            "gated delta nets say all their sizes; value heads are a multiple of key heads, and both of tp x cp",
            config, Phase::configuration, delta_nets_018, of_018_and_019},
        MegatronRule{
            "delta-nets",
            "gated delta nets say all their sizes; value heads are a multiple of key heads, and both of tp x cp",
            config, Phase::configuration, delta_nets_020, of_020},
        MegatronRule{"mamba-by-tp", "groups and heads of Mamba-2 are a multiple of tp",
                     "megatron/core/ssm/mamba_mixer.py", Phase::build, state_heads},
        MegatronRule{"attention-variant", "the attention's variant is gated_delta_net or dsa", config,
                     Phase::configuration, variant_016, to_019},
        MegatronRule{"sparse-attention", "DeepSeek's sparse attention goes without context parallelism", config,
                     Phase::configuration, sparse_attention},
        MegatronRule{"cpu-offloading",
                     "offloading goes with fewer layers than there are, no pipeline and no recomputation", config,
                     Phase::configuration, offload},
        MegatronRule{"fused-activation", "the fused bias and activation is of GELU, SwiGLU or quick GEGLU", config,
                     Phase::configuration, fused_activation},
    };
    return rules;
}

}  // namespace pipeweaver::launch
