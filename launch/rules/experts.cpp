// Mixtures of experts: what TransformerConfig and MoELayer require.
#include "launch/rules/rule.hpp"

#include <fmt/format.h>

#include <array>

namespace pipeweaver::launch {

namespace in_experts {

namespace {

using L = MegatronLaunch;

constexpr std::string_view config = "megatron/core/transformer/transformer_config.py";
constexpr std::string_view layer = "megatron/core/transformer/moe/moe_layer.py";

Why need_experts(const L& l, std::int64_t) {
    if (l.ep == 1 || l.experts) return std::nullopt;
    return fmt::format("ep is {}", l.ep);
}

Why some_experts(const L& l, std::int64_t) {
    if (l.experts != 0) return std::nullopt;
    return "0 are said";
}

Why width_alone(const L& l, std::int64_t) {
    if (l.experts || !l.expert_ffn) return std::nullopt;
    return "no experts are said";
}

Why shared_dispatch(const L& l, std::int64_t) {
    if (!l.shared_ffn || !l.shared_overlap || l.dispatcher == "alltoall") return std::nullopt;
    return fmt::format("the dispatcher is {}", l.dispatcher);
}

Why bias(const L& l, std::int64_t) {
    if (!l.experts || !l.linear_bias || *l.etp == 1) return std::nullopt;
    return fmt::format("linear layers have a bias, and experts are split over {} GPUs", *l.etp);
}

Why expert_bias(const L& l, std::int64_t) {
    if (!l.expert_bias || l.router_score == "sigmoid") return std::nullopt;
    return fmt::format("the score is {}", l.router_score);
}

Why expert_bias_020(const L& l, std::int64_t gpus) {
    return l.router_score == "sqrtsoftplus" ? std::nullopt : expert_bias(l, gpus);
}

Why score_016(const L& l, std::int64_t) {
    if (l.router_score != "sqrtsoftplus") return std::nullopt;
    return "it is sqrtsoftplus";
}

Why one_expert_a_token(const L& l, std::int64_t) {
    if (l.top_k != 1 || l.router_score != "softmax" || l.pre_softmax || l.load_balancing == "sinkhorn")
        return std::nullopt;
    return "each token takes one expert";
}

Why router_groups(const L& l, std::int64_t) {
    if (!l.router_group_topk) return std::nullopt;
    if (!l.router_groups) return "the number of groups is not said";
    if (!l.experts) return "no experts are said";
    if (*l.experts % *l.router_groups != 0) return fmt::format("{} experts in {} groups", *l.experts, *l.router_groups);
    if (*l.router_group_topk > *l.router_groups)
        return fmt::format("{} groups of {}", *l.router_group_topk, *l.router_groups);
    return std::nullopt;
}

Why allgather_lengths(const L& l, std::int64_t) {
    if (!l.variable_lengths || l.dispatcher != "allgather") return std::nullopt;
    return "variable lengths are said";
}

Why overlap(const L& l, std::int64_t) {
    if (!l.overlap_experts) return std::nullopt;
    if (l.pp > 1 && !l.vpp) return fmt::format("pp is {}, and a rank has one chunk", l.pp);
    if (l.ep == 1) return "ep is 1";
    if (l.dispatcher != "alltoall" && l.dispatcher != "flex") return fmt::format("the dispatcher is {}", l.dispatcher);
    if (l.recompute == "full") return "full recomputation is said";
    if (!l.recompute_method.empty()) return "a recomputation method is said";
    if (l.recompute_layers) return "a number of recomputed layers is said";
    if (!l.bf16 && !l.fp16) return "neither bf16 nor fp16 is said";
    if (l.shared_overlap) return "shared experts are overlapped, too";
    if (l.mtp_layers && *l.mtp_layers != 1) return fmt::format("{} layers of multi-token prediction", *l.mtp_layers);
    if (l.mtp_layers && l.pp == 1) return "multi-token prediction without a pipeline";
    return std::nullopt;
}

Why delayed_weights(const L& l, std::int64_t) {
    if (!l.delay_wgrad) return std::nullopt;
    if (!l.overlap_experts) return "the experts' exchange is not overlapped";
    if (l.legacy_grouped_gemm) return "the legacy grouped GEMM is said";
    return std::nullopt;
}

Why early_release(const L& l, std::int64_t) {
    if (!l.early_attention_release || l.overlap_experts) return std::nullopt;
    return "the experts' exchange is not overlapped";
}

Why divide(const L& l, std::int64_t) {
    if (!l.experts || *l.experts % l.ep == 0) return std::nullopt;
    return fmt::format("{} experts, ep {}", *l.experts, l.ep);
}

}  // namespace

}  // namespace in_experts

std::span<const MegatronRule> expert_rules() {
    using namespace in_experts;
    static const std::array rules{
        MegatronRule{"ep-experts", "expert parallelism takes experts", config, Phase::configuration, need_experts},
        MegatronRule{"some-experts", "the number of experts is above 0", config, Phase::configuration, some_experts},
        MegatronRule{"expert-width", "a width of experts goes with experts", config, Phase::configuration, width_alone},
        MegatronRule{"shared-overlap", "shared experts are overlapped by the all-to-all dispatcher alone", config,
                     Phase::configuration, shared_dispatch},
        MegatronRule{"experts-bias", "experts with a bias are not split: etp 1, or no bias in linear layers", config,
                     Phase::configuration, bias},
        MegatronRule{"router-score", "a router's score is softmax or sigmoid", config, Phase::configuration, score_016,
                     to_017},
        MegatronRule{"router-bias", "a router's expert bias goes with the sigmoid score", config, Phase::configuration,
                     expert_bias, to_017},
        MegatronRule{"router-bias", "a router's expert bias goes with the sigmoid or the sqrtsoftplus score", config,
                     Phase::configuration, expert_bias_020, since_018},
        MegatronRule{"router-pre-softmax", "one expert a token takes the softmax before the choice", config,
                     Phase::configuration, one_expert_a_token},
        MegatronRule{"router-groups", "groups of experts divide them, and a token takes no more than there are", config,
                     Phase::configuration, router_groups},
        MegatronRule{"allgather-lengths", "the all-gather dispatcher goes without variable lengths", config,
                     Phase::configuration, allgather_lengths},
        MegatronRule{
            "expert-overlap",
            "overlapped experts' exchange takes ep above 1, chunks where there is a pipeline, an all-to-all or flex "
            "dispatcher, bf16 or fp16, at most one layer of multi-token prediction, and no full recomputation",
            config, Phase::configuration, overlap},
        MegatronRule{"delayed-weight-gradients", "delayed weight gradients take the overlapped experts' exchange",
                     config, Phase::configuration, delayed_weights},
        MegatronRule{"early-attention-release", "early release of attention's memory takes the overlapped exchange",
                     config, Phase::configuration, early_release},
        MegatronRule{"moe-experts-by-ep", "the experts are a multiple of ep", layer, Phase::build, divide},
    };
    return rules;
}

}  // namespace pipeweaver::launch
