// What Megatron-LM asserts of its arguments before anything is built.
#include "launch/rules/rule.hpp"
#include "pipeweaver/launch/spellings.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace pipeweaver::launch {

namespace in_arguments {

namespace {

using L = MegatronLaunch;

constexpr std::string_view file = "megatron/training/arguments.py validate_args";

// Layers that are shared out evenly: those of the model, and stages that count as one.
std::int64_t shared_out(const L& l) {
    return *l.layers + (l.account_for_embedding ? 1 : 0) + (l.account_for_loss ? 1 : 0);
}

Why connections(const L& l, std::int64_t) {
    const bool other = l.torch_fsdp2 || l.megatron_fsdp || l.overlap_experts;
    if (l.max_connections.empty() || other || (l.tp == 1 && l.cp == 1) || !l.before_blackwell) return std::nullopt;
    if (l.max_connections == "1") return std::nullopt;
    return fmt::format("tp {}, cp {}, and it is set to {}", l.tp, l.cp, l.max_connections);
}

Why shard_connections(const L& l, std::int64_t) {
    if (l.max_connections != "1" || !(l.torch_fsdp2 || l.megatron_fsdp)) return std::nullopt;
    return fmt::format("--use-{} is said", l.torch_fsdp2 ? "torch-fsdp2" : "megatron-fsdp");
}

struct AttentionBackend {
    std::string_view name;
    std::array<std::string_view, 3> takes;  // of attention_variables
};
constexpr std::array backends{AttentionBackend{"auto", {"1", "1", "1"}}, AttentionBackend{"flash", {"1", "0", "0"}},
                              AttentionBackend{"fused", {"0", "1", "0"}}, AttentionBackend{"unfused", {"0", "0", "1"}},
                              AttentionBackend{"local", {"0", "0", "0"}}};

// "AttnBackend.flash" of overrides; one that is null sets nothing.
Why attention_kernels(const L& l, std::int64_t) {
    const std::string_view said = l.attention.empty() ? std::string_view("auto") : std::string_view(l.attention);
    const std::string_view name = said.substr(said.rfind('.') + 1);
    for (const AttentionBackend& one : backends) {
        if (one.name != name) continue;
        for (std::size_t i = 0; i < attention_variables.size(); ++i)
            if (const std::string& is = l.attention_variables[i]; !is.empty() && is != one.takes[i])
                return fmt::format("{} is {}, and {} takes {}", attention_variables[i], is, name, one.takes[i]);
    }
    return std::nullopt;
}

// Of adapters a teacher may be the model without them.
Why teacher_chunks(const L& l, std::int64_t) {
    if (l.teacher.empty() || l.tuner == "lora" || l.vpp.value_or(1) == 1) return std::nullopt;
    return fmt::format("{} chunks of a rank, and --teacher-model {}", *l.vpp, l.teacher);
}

Why teacher_server(const L& l, std::int64_t) {
    if (l.teacher_server.empty() || l.teacher_logits || l.learns != "gkd") return std::nullopt;
    return fmt::format("--teacher-model-server {}, and no --gkd-logits-topk", l.teacher_server);
}

bool says_ends(const L& l) { return l.first || l.last; }

Why no_pattern(const L& l, std::int64_t) {
    if (l.hybrid_pattern.empty()) return std::nullopt;
    return "it is said";
}

Why pattern_alone(const L& l, std::int64_t) {
    if (l.hybrid_pattern.empty()) return std::nullopt;
    if (!l.layout.empty()) return "--pipeline-model-parallel-layout is said";
    if (l.layers_per_virtual_stage || l.virtual_stages_per_rank) return "chunks of a rank are said";
    if (l.account_for_embedding || l.account_for_loss) return "the embedding or the loss is accounted for";
    if (says_ends(l) && l.hybrid_pattern.find('|') != std::string::npos)
        return "layers of the first or last rank are said";
    return std::nullopt;
}

Why world(const L& l, std::int64_t gpus) {
    if (l.dp(gpus) > 0) return std::nullopt;
    return fmt::format("{} GPUs are no multiple of tp {} x pp {} x cp {} = {}", gpus, l.tp, l.pp, l.cp,
                       l.tp * l.pp * l.cp);
}

Why one_way_of_chunks(const L& l, std::int64_t) {
    const int ways =
        (l.layers_per_virtual_stage ? 1 : 0) + (l.virtual_stages_per_rank ? 1 : 0) + (l.layout.empty() ? 0 : 1);
    if (ways <= 1) return std::nullopt;
    return fmt::format("{} of the three are said", ways);
}

Why layout_stages(const L& l, std::int64_t) {
    if (l.layout.empty()) return std::nullopt;
    auto read = parse_pipeline_layout(l.layout);
    if (!read.why_not.empty()) return std::move(read.why_not);
    if (read.stages.size() % static_cast<std::size_t>(l.pp) == 0) return std::nullopt;
    return fmt::format("it has {} stages, {} ranks", read.stages.size(), l.pp);
}

Why even_chunks(const L& l, std::int64_t) {
    if (!l.layout.empty() || !l.layers_per_virtual_stage || l.virtual_stages_per_rank) return std::nullopt;
    if (says_ends(l))
        return "--decoder-first-pipeline-num-layers or --decoder-last-pipeline-num-layers is said beside it";
    if (shared_out(l) % l.pp != 0) return fmt::format("{} layers on {} ranks", shared_out(l), l.pp);
    if (shared_out(l) / l.pp % *l.layers_per_virtual_stage != 0)
        return fmt::format("{} layers of a rank in chunks of {}", shared_out(l) / l.pp, *l.layers_per_virtual_stage);
    return std::nullopt;
}

Why even_ranks(const L& l, std::int64_t) {
    const bool other = !l.layout.empty() || l.layers_per_virtual_stage || l.virtual_stages_per_rank || says_ends(l) ||
                       !l.custom_layers.empty() || !l.custom_virtual_layers.empty() || !l.hybrid_pattern.empty();
    if (other || shared_out(l) % l.pp == 0) return std::nullopt;
    return fmt::format("{} layers on {} ranks", shared_out(l), l.pp);
}

Why interleaved_ranks(const L& l, std::int64_t) {
    const auto vpp = settled(l).vpp;
    if (!vpp) return std::nullopt;
    if (l.pp > 2 || (l.pp > 1 && l.overlap_p2p)) return std::nullopt;
    return fmt::format("{} chunks on {} ranks{}", *vpp, l.pp,
                       l.overlap_p2p ? "" : " with --no-overlap-p2p-communication");
}

Why overlap_params(const L& l, std::int64_t) {
    if (!l.overlap_params) return std::nullopt;
    if (!l.distributed_optimizer && !l.megatron_fsdp)
        return "neither --use-distributed-optimizer nor --use-megatron-fsdp is said";
    if (!l.overlap_grads) return "--overlap-grad-reduce is not said";
    return std::nullopt;
}

Why torch_fsdp(const L& l, std::int64_t) {
    if (!l.torch_fsdp2) return std::nullopt;
    if (l.pp != 1) return fmt::format("--pipeline-model-parallel-size is {}", l.pp);
    if (l.ep != 1) return fmt::format("--expert-model-parallel-size is {}", l.ep);
    if (l.distributed_optimizer) return "--use-distributed-optimizer is said";
    if (l.fused_accumulation) return "--no-gradient-accumulation-fusion is not said";
    if (!l.untied) return "--untie-embeddings-and-output-weights is not said";
    if (l.fp16) return "--fp16 is said";
    return std::nullopt;
}

Why one_precision(const L& l, std::int64_t) {
    if (l.bf16 && l.fp16) return "both are said";
    return std::nullopt;
}

Why channels(const L& l, std::int64_t) {
    if (l.kv_channels || l.is_named || *l.hidden % *l.heads == 0) return std::nullopt;
    return fmt::format("{} columns, {} heads, and --kv-channels is not said", *l.hidden, *l.heads);
}

Why context(const L& l, std::int64_t) {
    if (l.cp == 1 || *l.seq_length % (2 * l.cp) == 0) return std::nullopt;
    return fmt::format("{} tokens, 2 x {}", *l.seq_length, l.cp);
}

Why positions(const L& l, std::int64_t) {
    if (!l.max_positions && l.is_named) return std::nullopt;
    if (!l.max_positions) return "it is not said";
    if (*l.max_positions >= *l.seq_length) return std::nullopt;
    return fmt::format("--max-position-embeddings {}, --seq-length {}", *l.max_positions, *l.seq_length);
}

Why no_selective_method(const L& l, std::int64_t) {
    const bool selective = l.recompute_activations || l.recompute == "selective";
    if (!selective || l.recompute_method.empty()) return std::nullopt;
    return fmt::format("--recompute-method {} is said", l.recompute_method);
}

Why saved_activations(const L& l, std::int64_t) {
    if (!l.distribute_saved) return std::nullopt;
    if (l.tp == 1) return "--tensor-model-parallel-size is 1";
    if (l.recompute != "full" || l.recompute_activations) return "--recompute-granularity is not full";
    if (l.recompute_method.empty()) return "--recompute-method is not said";
    return std::nullopt;
}

Why tensor_overlap(const L& l, std::int64_t) {
    if (!l.tp_comm_overlap || (l.sequence_parallel && l.tp > 1)) return std::nullopt;
    return l.tp > 1 ? "--sequence-parallel is not said" : "--tensor-model-parallel-size is 1, which turns it off";
}

Why experts_divide(const L& l, std::int64_t) {
    if (l.ep == 1) return std::nullopt;
    if (l.experts.value_or(0) == 0) return "--num-experts is not said";
    if (*l.experts % l.ep == 0) return std::nullopt;
    return fmt::format("{} experts, {} groups", *l.experts, l.ep);
}

Why ramp_samples(const L& l, std::int64_t) {
    if (l.said_ramp.empty() || l.train_iters.value_or(0) == 0) return std::nullopt;
    return fmt::format("{} iterations are said", *l.train_iters);
}

Why mtp_positions(const L& l, std::int64_t) {
    const std::string kind = l.rotary ? "rope" : !l.positions.empty() ? l.positions : "learned_absolute";
    if (l.positions.empty() && l.is_named) return std::nullopt;
    if (l.mtp_layers.value_or(0) == 0 || kind == "rope" || kind == "none") return std::nullopt;
    return fmt::format("--position-embedding-type is {}", kind);
}

Why latent_groups(const L& l, std::int64_t) {
    if (!l.latent_attention || !l.grouped_query) return std::nullopt;
    return "both are said";
}

Why one_activation(const L& l, std::int64_t) {
    if (!l.swiglu || !(l.squared_relu || l.quick_geglu)) return std::nullopt;
    return fmt::format("--swiglu and --{}", l.squared_relu ? "squared-relu" : "quick-geglu");
}

}  // namespace

}  // namespace in_arguments

std::span<const MegatronRule> pattern_rules() {
    using namespace in_arguments;
    static const std::array rules{
        MegatronRule{"hybrid-pattern", "there is no --hybrid-layer-pattern", file, Phase::arguments, no_pattern,
                     of_016},
        MegatronRule{
            "hybrid-pattern",
            "--hybrid-layer-pattern goes without a layout, chunks, accounting and, where it has '|', counts of "
            "the first and last rank",
            file, Phase::arguments, pattern_alone, since_017},
    };
    return rules;
}

std::span<const MegatronRule> environment_rules() {
    using namespace in_arguments;
    static const std::array rules{
        MegatronRule{"max-connections",
                     "before Blackwell, tensor and context parallelism take CUDA_DEVICE_MAX_CONNECTIONS=1", file,
                     Phase::arguments, connections},
        MegatronRule{
            "attention-variables",
            "NVTE_FLASH_ATTN, NVTE_FUSED_ATTN and NVTE_UNFUSED_ATTN are not set, or as --attention-backend has "
            "them",
            "megatron/core/models/common/language_module/language_module.py _set_attention_backend", Phase::build,
            attention_kernels},
        MegatronRule{"teacher-chunks", "a teacher on the same GPUs goes without chunks of a rank",
                     "modelscope/ms-swift 3602360a swift/megatron/trainers/rollout_mixin.py _load_teacher_model",
                     Phase::build, teacher_chunks},
        MegatronRule{"teacher-server", "a teacher that is asked for its logits gives the largest alone",
                     "modelscope/ms-swift 3602360a swift/megatron/arguments/megatron_args.py", Phase::arguments,
                     teacher_server},
        MegatronRule{"fsdp-connections", "FSDP goes without CUDA_DEVICE_MAX_CONNECTIONS=1", file, Phase::arguments,
                     shard_connections},
    };
    return rules;
}

// Table: a rule a row.
std::span<const MegatronRule> argument_rules() {
    using namespace in_arguments;
    static const std::array rules{
        MegatronRule{"world-size", "the GPUs are a multiple of tp x pp x cp", file, Phase::arguments, world},
        MegatronRule{
            "chunks-said-once",
            "at most one of --num-layers-per-virtual-pipeline-stage, --num-virtual-stages-per-pipeline-rank and "
            "--pipeline-model-parallel-layout",
            file, Phase::arguments, one_way_of_chunks},
        MegatronRule{"layout-stages", "a layout's stages are a multiple of --pipeline-model-parallel-size", file,
                     Phase::arguments, layout_stages},
        MegatronRule{
            "chunk-layers",
            "--num-layers-per-virtual-pipeline-stage divides the layers of a rank, which are equal on all; with "
            "counts of the first or last rank say --num-virtual-stages-per-pipeline-rank",
            file, Phase::arguments, even_chunks},
        MegatronRule{
            "rank-layers",
            "the layers are a multiple of --pipeline-model-parallel-size, the embedding and the loss counted where "
            "they are accounted for",
            file, Phase::arguments, even_ranks},
        MegatronRule{"interleaved-ranks",
                     "chunks need 2 pipeline ranks and more, 3 with --no-overlap-p2p-communication", file,
                     Phase::arguments, interleaved_ranks},
        MegatronRule{"overlap-param-gather",
                     "--overlap-param-gather goes with a distributed optimizer and --overlap-grad-reduce", file,
                     Phase::arguments, overlap_params},
        MegatronRule{
            "torch-fsdp2",
            "--use-torch-fsdp2 goes with pp 1, ep 1, untied embeddings, no distributed optimizer, no fused gradient "
            "accumulation and no fp16",
            file, Phase::arguments, torch_fsdp},
        MegatronRule{"one-precision", "--bf16 or --fp16, not both", file, Phase::arguments, one_precision},
        MegatronRule{"head-width", "the width is a multiple of the heads unless --kv-channels is said", file,
                     Phase::arguments, channels},
        MegatronRule{"sequence-by-context", "the sequence is a multiple of 2 x --context-parallel-size", file,
                     Phase::arguments, context},
        MegatronRule{"positions", "--max-position-embeddings is said and at least --seq-length", file, Phase::arguments,
                     positions},
        MegatronRule{"selective-method", "selective recomputation has no --recompute-method", file, Phase::arguments,
                     no_selective_method},
        MegatronRule{"saved-activations",
                     "--distribute-saved-activations goes with tensor parallelism and full recomputation by a method",
                     file, Phase::arguments, saved_activations},
        MegatronRule{"tp-comm-overlap", "--tp-comm-overlap goes with sequence parallelism", file, Phase::arguments,
                     tensor_overlap},
        MegatronRule{"experts-by-ep", "--num-experts is a multiple of --expert-model-parallel-size", file,
                     Phase::arguments, experts_divide},
        MegatronRule{"mtp-positions", "multi-token prediction takes rotary positions or none", file, Phase::arguments,
                     mtp_positions},
        MegatronRule{"latent-groups", "--multi-latent-attention goes without --group-query-attention", file,
                     Phase::arguments, latent_groups},
        MegatronRule{"one-activation", "--swiglu goes without --squared-relu and --quick-geglu",
                     "megatron/training/arguments.py core_transformer_config_from_args", Phase::arguments,
                     one_activation},
        MegatronRule{"ramp-samples", "--rampup-batch-size goes with --train-samples, not with --train-iters", file,
                     Phase::arguments, ramp_samples},
    };
    return rules;
}

}  // namespace pipeweaver::launch
