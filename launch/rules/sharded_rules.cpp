// What sharded trainers require of a launch, each where its source asserts it.
#include "launch/rules/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::launch {

namespace in_sharded_rules {

namespace {

using L = ShardedLaunch;

constexpr std::string_view trainer = "huggingface/transformers src/transformers/trainer.py";
constexpr std::string_view arguments = "huggingface/transformers src/transformers/training_args.py";
constexpr std::string_view integration = "huggingface/transformers src/transformers/integrations/deepspeed.py";

// --- Hugging Face's Trainer, and those that are made of it

Why one_sharding(const L& l, std::int64_t) {
    if (!l.is_deepspeed() || !l.is_fsdp()) return std::nullopt;
    return fmt::format("DeepSpeed by '{}', FSDP by '{}'", l.deepspeed, l.fsdp);
}

Why one_precision(const L& l, std::int64_t) {
    if (!l.bf16 || !l.fp16) return std::nullopt;
    return "both are on";
}

Why same_values(const L& l, std::int64_t) {
    if (l.casts_whole) return std::nullopt;  // LLaMA-Factory's v1 compares nothing
    if (l.said_batch && *l.said_batch != l.micro_batch)
        return fmt::format("train_micro_batch_size_per_gpu is {}, per_device_train_batch_size {}", *l.said_batch,
                           l.micro_batch);
    if (l.said_accumulation && l.accumulation && *l.said_accumulation != *l.accumulation)
        return fmt::format("gradient_accumulation_steps are {} and {}", *l.said_accumulation, *l.accumulation);
    return std::nullopt;
}

constexpr std::array of_trainer{
    ShardedRule{"one-sharding", "DeepSpeed or FSDP, not both", trainer, Phase::arguments, one_sharding},
    ShardedRule{"one-precision", "bf16 or fp16, not both", arguments, Phase::arguments, one_precision},
    ShardedRule{"deepspeed-values", "microbatch and accumulation of DeepSpeed's file are \"auto\" or the trainer's",
                integration, Phase::configuration, same_values},
};

// --- LLaMA-Factory

Why whole_batch(const L& l, std::int64_t gpus) {
    if (!l.global_batch || l.microbatches(gpus) > 0) return std::nullopt;
    return fmt::format("{} samples, {} x {}", *l.global_batch, l.micro_batch, l.dp(gpus));
}

// Of v1; none of the others has such degrees.
Why shards_of_world(const L& l, std::int64_t gpus) {
    const std::int64_t replicate = std::max<std::int64_t>(1, l.replicate.value_or(1)), shard = l.shard.value_or(0);
    if (!l.casts_whole || gpus == 1) return std::nullopt;
    if (shard > 0 ? replicate * shard == gpus : gpus % replicate == 0) return std::nullopt;
    return shard > 0 ? fmt::format("{} x {} of {} GPUs", replicate, shard, gpus)
                     : fmt::format("{} of {} GPUs", replicate, gpus);
}

Why pure_bf16(const L& l, std::int64_t) {
    if (!l.all_16_bits || !l.is_deepspeed() || l.zero_stage() < 3) return std::nullopt;
    return "pure_bf16 with ZeRO 3";
}

Why apart_in_sft(const L& l, std::int64_t) {
    if (!l.apart || l.stage == "sft") return std::nullopt;
    return fmt::format("the stage is {}", l.stage);
}

constexpr std::array of_llama_factory{
    ShardedRule{"pure-bf16", "pure_bf16 goes without ZeRO 3",
                "hiyouga/LLaMA-Factory src/llamafactory/hparams/parser.py", Phase::arguments, pure_bf16},
    ShardedRule{"neat-packing", "neat_packing is of the stage sft",
                "hiyouga/LLaMA-Factory src/llamafactory/hparams/parser.py", Phase::arguments, apart_in_sft},
    ShardedRule{"shards", "replicas and shards make up the GPUs",
                "hiyouga/LLaMA-Factory src/llamafactory/v1/accelerator/interface.py", Phase::groups, shards_of_world},
    ShardedRule{"global-batch", "the global batch is a multiple of the microbatch x dp",
                "hiyouga/LLaMA-Factory src/llamafactory/v1/core/utils/batching.py", Phase::configuration, whole_batch},
};

// --- ms-swift

Why packing_with_flash(const L& l, std::int64_t) {
    const bool joins = l.packs.value_or(false) || l.flattens;
    if (!joins || l.attention == "flash") return std::nullopt;
    return fmt::format("attn_impl is {}", l.attention.empty() ? "not said" : "'" + l.attention + "'");
}

Why ring_without_padding(const L& l, std::int64_t) {
    if (!l.rings_rest || l.ring == 1 || l.packs.value_or(false) || l.flattens) return std::nullopt;
    return fmt::format("{} key and value heads, sequence_parallel_size {}", l.kv_heads, l.sequence * l.ring);
}

constexpr std::array of_swift{
    ShardedRule{"packing-attention", "packing and padding_free take flash attention",
                "modelscope/ms-swift swift/arguments/sft_args.py", Phase::arguments, packing_with_flash},
    ShardedRule{"ring-padding",
                "a sequence_parallel_size that does not divide the key and value heads takes padding_free or packing",
                "modelscope/ms-swift swift/sequence_parallel/sequence_parallel.py", Phase::build, ring_without_padding},
};

// --- VeOmni

constexpr std::string_view veomni = "ByteDance-Seed/VeOmni veomni/arguments/arguments_types.py";

Why veomni_world(const L& l, std::int64_t gpus) {
    const std::int64_t product = l.pp * l.sequence * l.ring * l.tp;
    if (gpus % product == 0) return std::nullopt;
    return fmt::format("{} GPUs, pp {} x ulysses {} x cp {} x tp {}", gpus, l.pp, l.sequence, l.ring, l.tp);
}

Why veomni_degrees(const L& l, std::int64_t) {
    if (l.tp == 1 && l.pp == 1 && l.ring == 1) return std::nullopt;
    return fmt::format("tp {}, pp {}, cp {}", l.tp, l.pp, l.ring);
}

Why shards_of_replicas(const L& l, std::int64_t gpus) {
    const std::int64_t dp = l.dp(gpus), replicate = l.replicate.value_or(0), shard = l.shard.value_or(0);
    if (replicate > 0 && shard > 0 && replicate * shard != dp)
        return fmt::format("{} x {} of dp {}", replicate, shard, dp);
    if (const std::int64_t one = replicate > 0 ? replicate : shard; one > 0 && dp % one != 0)
        return fmt::format("{} of dp {}", one, dp);
    return std::nullopt;
}

constexpr std::array of_veomni{
    ShardedRule{"world", "the GPUs are a multiple of pp x ulysses x cp x tp", veomni, Phase::arguments, veomni_world},
    ShardedRule{"degrees", "tp, pp and cp are 1", veomni, Phase::arguments, veomni_degrees},
    ShardedRule{"shards", "replicas and shards make up dp", veomni, Phase::arguments, shards_of_replicas},
    ShardedRule{"global-batch", "the global batch is a multiple of the microbatch x dp", veomni, Phase::configuration,
                whole_batch},
};

// --- NeMo AutoModel

constexpr std::string_view mesh = "NVIDIA-NeMo/Automodel nemo_automodel/components/distributed/mesh_utils.py";

Why automodel_world(const L& l, std::int64_t gpus) {
    const std::int64_t product = l.tp * l.ring * l.pp;
    if (gpus % product == 0) return std::nullopt;
    return fmt::format("{} GPUs, tp {} x cp {} x pp {}", gpus, l.tp, l.ring, l.pp);
}

Why automodel_replicas(const L& l, std::int64_t gpus) {
    const std::int64_t dp = l.dp(gpus), replicate = l.replicate.value_or(1);
    if (replicate <= 1 || (dp % replicate == 0 && replicate < dp)) return std::nullopt;
    return fmt::format("{} of dp {}", replicate, dp);
}

Why automodel_experts(const L& l, std::int64_t gpus) {
    if (l.ep == 1 || gpus / l.pp % l.ep == 0) return std::nullopt;
    return fmt::format("{} GPUs of a pipeline rank, ep {}", gpus / l.pp, l.ep);
}

Why automodel_stages(const L& l, std::int64_t) {
    if (l.pp == 1 || (l.layers == 0 && titan_schedule(l.schedule))) return std::nullopt;
    auto built = built_layers(l);
    if (built.why_not.empty()) return std::nullopt;
    return std::move(built.why_not);
}

Why automodel_parts(const L& l, std::int64_t) {
    if (l.pp == 1 || l.parts() >= l.pp) return std::nullopt;
    return fmt::format("{} samples in microbatches of {}, pp {}", l.micro_batch, l.samples(), l.pp);
}

constexpr std::array of_automodel{
    ShardedRule{"world", "the GPUs are a multiple of tp x cp x pp", mesh, Phase::groups, automodel_world},
    ShardedRule{"replicas", "dp_replicate_size divides dp and is less", mesh, Phase::groups, automodel_replicas},
    ShardedRule{"experts", "the GPUs of a pipeline rank are a multiple of ep", mesh, Phase::groups, automodel_experts},
    ShardedRule{"pipeline-batch",
                "a pipeline splits the local batch into as many microbatches as it has ranks, or more",
                "NVIDIA-NeMo/Automodel nemo_automodel/recipes/llm/train_ft.py", Phase::configuration, automodel_parts},
    ShardedRule{"stages", "the layers make stages for the ranks as the schedule takes them",
                "NVIDIA-NeMo/Automodel nemo_automodel/components/distributed/pipelining/functional.py", Phase::build,
                automodel_stages},
    ShardedRule{"global-batch", "the global batch is a multiple of the local batch x dp",
                "NVIDIA-NeMo/Automodel nemo_automodel/components/training/step_scheduler.py", Phase::configuration,
                whole_batch},
};

}  // namespace

}  // namespace in_sharded_rules

std::vector<std::span<const ShardedRule>> sharded_rules(std::string_view framework) {
    using namespace in_sharded_rules;
    if (framework == "llama-factory") return {of_llama_factory, of_trainer};
    if (framework == "ms-swift") return {of_swift, of_trainer};
    if (framework == "hugging-face-trainer") return {of_trainer};
    if (framework == "veomni") return {of_veomni};
    if (framework == "nemo-automodel") return {of_automodel};
    return {};
}

}  // namespace pipeweaver::launch
