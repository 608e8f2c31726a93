// What DeepSpeed's files and those of `accelerate launch` say, and files that repositories ship by name.
#include "frameworks/sharded_tables.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::frameworks {

namespace {

using L = ShardedLaunch;

constexpr std::array of_deepspeed{
    ShardedRow{"deepspeed.zero_optimization.stage", &L::zero, "0"},
    ShardedRow{"deepspeed.zero_optimization.offload_optimizer.device", &L::offload_optimizer},
    ShardedRow{"deepspeed.zero_optimization.offload_param.device", &L::offload_weights},
    ShardedRow{"deepspeed.zero_optimization.cpu_offload", &L::offload_optimizer, "", "true=cpu|false=none"},
    ShardedRow{"deepspeed.zero_optimization.reduce_bucket_size", &L::reduce_bucket},
    ShardedRow{"deepspeed.zero_optimization.stage3_max_live_parameters", &L::live_weights},
    ShardedRow{"deepspeed.zero_optimization.sub_group_size", &L::sub_group},
    ShardedRow{"deepspeed.zero_optimization.overlap_comm", &L::two_buckets},
    ShardedRow{"deepspeed.bf16.enabled", &L::said_bf16},
    ShardedRow{"deepspeed.fp16.enabled", &L::said_fp16},
    ShardedRow{"deepspeed.data_types.grad_accum_dtype", &L::gradient_dtype},
    ShardedRow{"deepspeed.train_micro_batch_size_per_gpu", &L::said_batch},
    ShardedRow{"deepspeed.gradient_accumulation_steps", &L::said_accumulation},
    ShardedRow{"deepspeed.tensor_parallel.autotp_size", &L::tp},
    ShardedRow{"deepspeed.optimizer.type", &L::file_optimizer},
};

constexpr std::string_view words_of_resharding =
    "FULL_SHARD=true|SHARD_GRAD_OP=false|1=true|2=false|NO_SHARD=false|HYBRID_SHARD=true|HYBRID_SHARD_ZERO2=false";

constexpr std::array of_accelerate{
    ShardedRow{"accelerate.config_file", &L::accelerate},
    ShardedRow{"accelerate.distributed_type", &L::launcher},
    ShardedRow{"accelerate.use_deepspeed", &L::launcher, "", "true=DEEPSPEED|=DEEPSPEED"},
    ShardedRow{"accelerate.use_fsdp", &L::launcher, "", "true=FSDP|=FSDP"},
    ShardedRow{"accelerate.use_megatron_lm", &L::launcher, "", "true=MEGATRON_LM|=MEGATRON_LM"},
    ShardedRow{"accelerate.mixed_precision", &L::launched_bf16, "", "bf16=true|fp16=auto|no=false|fp8=true"},
    ShardedRow{"accelerate.fsdp_reshard_after_forward", &L::reshards, "", words_of_resharding},
    ShardedRow{"accelerate.fsdp_sharding_strategy", &L::reshards, "", words_of_resharding},
    ShardedRow{"accelerate.fsdp_activation_checkpointing", &L::recompute_by_fsdp},
    ShardedRow{"accelerate.fsdp_offload_params", &L::offload_weights, "", "true=cpu|false=none"},
    ShardedRow{"accelerate.zero_stage", &L::zero},
    ShardedRow{"accelerate.offload_optimizer_device", &L::offload_optimizer},
    ShardedRow{"accelerate.offload_param_device", &L::offload_weights},
    ShardedRow{"accelerate.deepspeed_config_file", &L::deepspeed},
    ShardedRow{"accelerate.parallelism_config_tp_size", &L::tp},
    ShardedRow{"accelerate.parallelism_config_cp_size", &L::ring},
    ShardedRow{"accelerate.parallelism_config_sp_size", &L::sequence},
    ShardedRow{"accelerate.parallelism_config_dp_replicate_size", &L::replicate},
};

constexpr std::string_view swift_source = "modelscope/ms-swift 3602360a swift/config/";
constexpr std::string_view older_swift_source = "modelscope/ms-swift 2.6.1 swift/llm/ds_config/";
constexpr std::string_view factory_source = "hiyouga/LLaMA-Factory ff6d4d12 examples/deepspeed/";
constexpr std::string_view internvl_source = "OpenGVLab/InternVL 2410d1db internvl_chat/";

using FileSettings = std::vector<std::pair<std::string_view, std::string_view>>;

FileSettings zero_stage(std::string_view number, std::string_view bucket, std::string_view offload = {}) {
    FileSettings all{{"deepspeed.zero_optimization.stage", number},
                     {"deepspeed.zero_optimization.reduce_bucket_size", bucket},
                     {"deepspeed.zero_optimization.allgather_bucket_size", bucket}};
    if (offload.empty()) return all;
    all.emplace_back("deepspeed.zero_optimization.offload_optimizer.device", offload);
    if (number == "3") all.emplace_back("deepspeed.zero_optimization.offload_param.device", offload);
    return all;
}

FileSettings overlapped(FileSettings all) {
    all.emplace_back("deepspeed.zero_optimization.overlap_comm", "true");
    all.emplace_back("deepspeed.optimizer.type", "AdamW");
    return all;
}

FileSettings with_tensor_parallel(FileSettings all) {
    all.emplace_back("deepspeed.tensor_parallel.autotp_size", "2");
    return all;
}

// Table: a file a row.
std::vector<KnownFile> all_files() {
    constexpr std::string_view swift = "ms-swift on DeepSpeed or FSDP";
    return {
        {"zero0", swift, zero_stage("0", "2e8"), swift_source},
        {"zero1", swift, zero_stage("1", "2e8"), swift_source},
        {"zero2", swift, zero_stage("2", "2e8"), swift_source},
        {"zero3", swift, zero_stage("3", "auto"), swift_source},
        {"zero2_offload", swift, zero_stage("2", "2e8", "cpu"), swift_source},
        {"zero3_offload", swift, zero_stage("3", "auto", "cpu"), swift_source},
        {"default-zero2", swift, zero_stage("2", "2e8"), older_swift_source},
        {"default-zero3", swift, zero_stage("3", "auto"), older_swift_source},
        {"fsdp2",
         swift,
         {{"fsdp_config.reshard_after_forward", "true"}, {"fsdp_config.activation_checkpointing", "true"}},
         swift_source},
        {"ds_z0_config.json", {}, zero_stage("0", "5e8"), factory_source},
        {"ds_z2_config.json", {}, zero_stage("2", "5e8"), factory_source},
        {"ds_z3_config.json", {}, zero_stage("3", "auto"), factory_source},
        {"ds_z2_offload_config.json", {}, zero_stage("2", "5e8", "cpu"), factory_source},
        {"ds_z3_offload_config.json", {}, zero_stage("3", "auto", "cpu"), factory_source},
        {"ds_z2_autotp_config.json", {}, with_tensor_parallel(zero_stage("2", "5e8")), factory_source},
        {"zero_stage1_config.json", {}, overlapped(zero_stage("1", "1e9")), internvl_source},
        {"zero_stage3_config_70b.json", {}, overlapped(zero_stage("3", "1e9")), internvl_source},
        {"zero_stage3_config_100b.json", {}, overlapped(zero_stage("3", "1e9")), internvl_source},
    };
}

}  // namespace

ShardedTable deepspeed_file() {
    return {"deepspeedai/DeepSpeed 0.19.6 (edaa7221) deepspeed/runtime/zero/config.py, runtime/config.py",
            of_deepspeed};
}

ShardedTable accelerate_file() {
    return {"huggingface/accelerate 16cb6eb8 src/accelerate/commands/launch.py, utils/dataclasses.py", of_accelerate};
}

const KnownFile* known_file(std::string_view path, std::string_view entry) {
    static const std::vector<KnownFile> all = all_files();
    const auto found = std::find_if(all.begin(), all.end(), [&](const KnownFile& one) {
        const bool is_end = path.ends_with(one.name) &&
                            (path.size() == one.name.size() || path[path.size() - one.name.size() - 1] == '/');
        return is_end && (one.entry.empty() ? path.ends_with(".json") : one.entry == entry && path == one.name);
    });
    return found == all.end() ? nullptr : &*found;
}

std::optional<OptimizerStates> states_of(std::string_view optimizer) {
    struct States {
        std::string_view name;
        std::int64_t bytes;
        bool are_wide = false;
    };
    // transformers 00349ae8 training_args.py OptimizerNames; 8-bit states have 1 byte each (bitsandbytes).
    static constexpr std::array known{
        States{"adamw", 8}, States{"adamw_torch", 8}, States{"adamw_torch_fused", 8}, States{"adamw_hf", 8},
        States{"adamw_apex_fused", 8}, States{"adam", 8}, States{"adamw_bnb_8bit", 2}, States{"adamw_8bit", 2},
        States{"sgd", 0}, States{"lion_32bit", 4}, States{"lion_8bit", 1}, States{"AdamW", 8}, States{"Adam", 8},
        States{"FusedAdam", 8}, States{"torch.optim.Adam", 8}, States{"torch.optim.AdamW", 8},
        // TransformerEngine 04912bf0 pytorch/optimizers/fused_adam.py, exp_avg_dtype
        States{"transformer_engine.pytorch.optimizers.FusedAdam", 8, true},
        States{"transformer_engine.pytorch.optimizers.fused_adam.FusedAdam", 8, true}};
    const auto* const found =
        std::find_if(known.begin(), known.end(), [&](const States& one) { return one.name == optimizer; });
    return found == known.end() ? std::nullopt : std::optional(OptimizerStates{found->bytes, found->are_wide});
}

}  // namespace pipeweaver::frameworks
