// Of each framework the settings that its memory depends on and ours does not follow.
#include "pipeweaver/frameworks/memory_setting.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::frameworks {

namespace {

using enum Dialect;
using enum Effect;
using Rows = std::vector<MemorySetting>;

constexpr std::string_view tower = "a tower in front of the language model that is not counted";
constexpr std::string_view images = "positions of images that are not counted";
constexpr std::string_view frozen = "frozen weights hold no gradients and no optimizer state";
constexpr std::string_view adapters = "adapters in place of trained weights hold little";
constexpr std::string_view host = "what lies on the host holds nothing on the GPU";
constexpr std::string_view copy = "another copy of a model holds weights, too";
constexpr std::string_view loss = "the loss is computed in another way than counted";
constexpr std::string_view shares_before_0_3 = "experts or stages shared out in a way that 0.3 has no more";
constexpr std::string_view states = "another precision or kind of optimizer state than counted";
constexpr std::string_view residuals = "a residual stream of 32 bits";
constexpr std::string_view graphs = "CUDA graphs hold memory of their own";
constexpr std::string_view network = "another network than the one that is counted";
constexpr std::string_view task = "a head of another task in place of the vocabulary's";
constexpr std::string_view passed_over =
    "ms-swift has no train_type since 4.1, and passes over it then: its own default, other than that, is trained";
constexpr std::string_view megatron_core =
    "a setting of Megatron Core, by whose trainer USE_MCA=1 trains: check the command that says it";

MemorySetting of_step(MemorySetting row, std::string_view values = "*") {
    row.step = values;
    return row;
}

// A head of a few classes is smaller than the vocabulary's, and so are its logits; other tasks may have several
// sequences a sample (ms-swift 3602360a model/model_meta.py, template/base.py _seq_cls_encode, _reranker_encode).
MemorySetting classes(MemorySetting row) {
    row.only = "seq_cls";
    return row;
}

MemorySetting of_logits(MemorySetting row) {
    row.of_loss = true;
    return row;
}

MemorySetting beside(MemorySetting row, std::string_view setting, std::string_view is) {
    row.beside = setting;
    row.beside_is = is;
    return row;
}

MemorySetting of_muon(MemorySetting row) {
    row.only = "muon";
    return row;
}

Rows tuning_rows() {
    return {
        {megatron_arguments, "freeze-*", less, frozen},
        {megatron_arguments, "trainable-parameters*", either, frozen},
        {megatron_arguments, "trainable-modules", less, frozen},
        {megatron_arguments, "model.*.freeze", less, frozen},
        {megatron_arguments, "model.*", either, network},
        {megatron_arguments, "enable-full-hetero-dp", either, "encoders with degrees of their own"},
        {megatron_arguments, "peft*", less, adapters},
        {megatron_arguments, "adapters", less, adapters},
        {megatron_arguments, "adapter-load", less, adapters},
        {megatron_arguments, "target-regex", either, adapters},
        {megatron_arguments, "target-parameters", either, adapters},
        beside({megatron_arguments, "ignore-args-error", more, passed_over}, "train-type", "lora"),
        {megatron_arguments, "optimizer-offload-*", less, host},
        {megatron_arguments, "offload-optimizer-*", less, host},
        {megatron_arguments, "cpu-offloading", less, host},
        {megatron_arguments, "cpu-offloading-*", less, host},
    };
}

Rows network_rows() {
    return {
        {megatron_arguments, "vision-model-type", more, tower, {}, true, true},
        {megatron_arguments, "vision-num-layers", more, tower, {}, true, true},
        {megatron_arguments, "vision-hidden-size", more, tower, {}, true, true},
        {megatron_arguments, "vision-projection-type", more, tower, {}, true, true},
        {megatron_arguments, "vision-backbone*", more, tower, {}, true, true},
        {megatron_arguments, "encoder-num-layers", more, tower, {}, true, true},
        {megatron_arguments, "encoder-*-model-parallel-size", more, tower, {}, true, true},
        {megatron_arguments, "audio-model-type", more, tower, {}, true, true},
        {megatron_arguments, "audio-num-layers", more, tower, {}, true, true},
        {megatron_arguments, "sound-model-type", more, tower, {}, true, true},
        {megatron_arguments, "model-provider", either, network},
        {megatron_arguments, "max-num-tiles", more, images, {}, true, true},
        {megatron_arguments, "image-max-pixels", either, "sizes to which images are scaled"},
        {megatron_arguments, "vit-gradient-checkpointing", less, "a tower whose blocks are computed again"},
        {megatron_arguments, "decoder-seq-length", either, "a decoder's own sequence length"},
        {megatron_arguments, "decoder-num-layers", either, "a decoder's own layers", {}, true},
        {megatron_arguments, "spec", either, network, {}, true},
        {megatron_arguments, "mamba-*", either, network, {}, true},
        {megatron_arguments, "heterogeneous-layers-config-*", either, network, {}, true},
        {megatron_arguments, "use-checkpoint-args", either, "sizes are the checkpoint's", {}, true},
        {megatron_arguments, "use-mp-args-from-checkpoint-args", either, "degrees are the checkpoint's"},
        {megatron_arguments, "yaml-cfg", either, "a file says settings that are not read here"},
    };
}

Rows step_rows() {
    return {
        {megatron_arguments, "fp8-param-gather", less, states},
        {megatron_arguments, "fp4-*", less, states},
        {megatron_arguments, "optimizer", either, states, "adam"},
        {megatron_arguments, "torch-dtype", either, states, "bfloat16|float16"},
        {megatron_arguments, "params-dtype", either, states, "bf16|torch.bfloat16|bfloat16"},
        {megatron_arguments, "transformer-impl", more, "kernels of an older kind keep more", "transformer_engine"},
        {megatron_arguments, "moe-pad-expert-input-to-capacity", more, "experts pad their tokens"},
        {megatron_arguments, "enable-cuda-graph", more, graphs},
        {megatron_arguments, "external-cuda-graph", more, graphs},
        {megatron_arguments, "cuda-graph-impl", more, graphs, "none"},
        // NVIDIA/Megatron-LM core 0.16 language_model_embedding.py, transformer_layer.py: inputs of all layers, too.
        of_step({megatron_arguments, "fp32-residual-connection", more, residuals}),
        of_step({bridge_overrides, "model.fp32_residual_connection", more, residuals}),
        of_step({megatron_arguments, "linear-ce-*", less, loss}),
        of_step({megatron_arguments, "loss-chunk*", less, loss}),
        of_step({megatron_arguments, "use-logits-to-keep", less, loss}),
        of_step({megatron_arguments, "use-liger-kernel", less, loss}),
        {megatron_arguments, "ref-model", more, copy},
        {megatron_arguments, "ref-adapters", more, copy},
        {megatron_arguments, "ref-load", more, copy, {}, false, false, "tuner-type", "lora"},
        {megatron_arguments, "teacher-load", more, copy},
        {megatron_arguments, "export-kd-teacher-load", more, copy},
        {megatron_arguments, "reward-model", more, copy},
        {megatron_arguments, "use-ray", either, "roles that Ray gives GPUs of their own"},
        {megatron_arguments, "multi-turn-scheduler", more, "answers of several turns, longer than one"},
        {megatron_arguments, "use-gym-env", more, "answers of several turns, longer than one"},
        {megatron_arguments, "gym-env", more, "answers of several turns, longer than one"},
        {megatron_arguments, "reference-free", less, copy},
        classes({megatron_arguments, "task-type", less, task}),
        {megatron_arguments, "task-type", either, task, "causal_lm"},
    };
}

Rows bridge_rows() {
    return {
        {bridge_overrides, "peft*", less, adapters},
        {bridge_overrides, "model.freeze_*", less, frozen},
        {bridge_overrides, "optimizer.optimizer_offload_*", less, host},
        {bridge_overrides, "optimizer.optimizer", either, states, "adam"},
        {bridge_overrides, "model.cpu_offloading", less, host},
        {bridge_overrides, "model.vision_*", more, tower, {}, true, true},
        {bridge_overrides, "model.audio_*", more, tower, {}, true, true},
        {bridge_overrides, "model.fp8_param*", less, states},
        {bridge_overrides, "mixed_precision", either, states, "bf16_mixed|fp16_mixed"},
        {bridge_overrides, "mixed_precision.fp8_param*", less, states},
        {bridge_overrides, "model.moe_pad_expert_input_to_capacity", more, "experts pad their tokens"},
        {bridge_overrides, "model.enable_cuda_graph", more, graphs},
        {bridge_overrides, "model.external_cuda_graph", more, graphs},
        {bridge_overrides, "model.cuda_graph_impl", more, graphs, "none"},
        {bridge_overrides, "model.transformer_impl", more, "kernels of an older kind keep more", "transformer_engine"},
        {bridge_overrides, "dataset.packed_sequence_size", either, "packed sequences of their own length", "-1"},
        {bridge_overrides, "dataset.packed_sequence_specs.packed_sequence_size", either,
         "packed sequences of their own length", "-1"},
        {bridge_overrides, "model.hf_model_id", either, network, {}, true},
        {bridge_overrides, "teacher*", more, copy},
    };
}

Rows titan_rows() {
    return {
        {titan_settings, "training.enable_cpu_offload", less, host},
        {titan_settings, "training.dtype", less, states, "float32"},
        {titan_settings, "training.mixed_precision_param", more, states, "bfloat16|float16"},
        {titan_settings, "optimizer.name", either, states, "Adam|AdamW"},
        {titan_settings, "optimizer.implementation", either, states, "fused|foreach|for-loop"},
        // 0.2.2 and 0.1.0 torchtitan/config/job_config.py: of every so many layers, or by operators, as 0.3 has it.
        of_step({titan_settings, "activation_checkpoint.selective_ac_option", either,
                 "checkpointing of every so many layers", "op"}),
        of_step({titan_settings, "activation_checkpoint.*", either, "checkpointing by operators"}),
        of_step({titan_settings, "activation-checkpoint.*", either, "checkpointing by operators"}),
        {titan_settings, "quantize.*", either, states},
        of_step({titan_settings, "model.converters", either, network}, "Float8*|MXFP8*|NVFP4*"),
        of_step({titan_settings, "loss.*", either, loss}),
        of_logits(of_step({titan_settings, "loss", less, "a loss in chunks holds a part of the logits"})),
        // 0.2.2 and 0.1.0 torchtitan/config/job_config.py, config_manager.py: what 0.3 has no more.
        {titan_settings, "parallelism.expert_tensor_parallel_degree", either, shares_before_0_3},
        {titan_settings, "parallelism.pipeline_parallel_split_points", either, shares_before_0_3},
        {titan_settings, "lora.*", less, adapters},
        {titan_settings, "model_override.*", either, network},
    };
}

// Table: of LLaMA-Factory, ms-swift, InternVL, VeOmni, NeMo AutoModel, DeepSpeed's files; sources are those of
// frameworks/*/settings.cpp.
Rows sharded_memory_rows() {
    return {
        // LLaMA-Factory ff6d4d12 train/trainer_utils.py: moments of projected gradients, of a block, of rows; one
        // momentum (third_party/muon/muon.py), as of ms-swift 3602360a optimizers/muon.py. What an update works out
        // of a matrix is given up behind it.
        {sharded_settings, "use_galore", less, states},
        {sharded_settings, "use_apollo", less, states},
        {sharded_settings, "use_badam", less, states},
        {sharded_settings, "use_adam_mini", less, states},
        {sharded_settings, "use_muon", less, states},
        of_muon({sharded_settings, "optimizer", less, states}),
        {sharded_settings, "optimizer", either, states, "default|lorap|multimodal"},
        {sharded_settings, "lisa_activated_layers", less, frozen},
        {sharded_settings, "quantization_bit", less, "frozen weights of fewer bits"},
        {sharded_settings, "quant_method", less, "frozen weights of fewer bits"},
        {sharded_settings, "quant_bits", less, "frozen weights of fewer bits"},
        {sharded_settings, "load_in_4bit", less, "frozen weights of fewer bits"},
        {sharded_settings, "load_in_8bit", less, "frozen weights of fewer bits"},
        {sharded_settings, "bits", less, "frozen weights of fewer bits", "16"},
        {sharded_settings, "quantization.*", less, "frozen weights of fewer bits"},
        {sharded_settings, "use_kt", less, host},
        {sharded_settings, "use_unsloth", either, "kernels of another kind"},
        of_step({sharded_settings, "use_unsloth_gc", less, host}),
        {sharded_settings, "use_dora", more, "DoRA keeps weights of its own"},
        {sharded_settings, "mixture_of_depths", either, network},
        {sharded_settings, "use_llama_pro", either, network},
        {sharded_settings, "modules_to_save", more, "modules that are trained whole beside adapters"},
        // ms-swift 3602360a pipelines/base.py _parse_args
        beside({sharded_settings, "ignore_args_error", less, passed_over}, "train_type", "full"),
        {sharded_settings, "resize_vocab", more, "a larger vocabulary"},
        {sharded_settings, "train_mm_proj_only", less, frozen},
        of_step({sharded_settings, "fp8", either, states}),
        {sharded_settings, "fp8_backend", less, states, "auto|torchao|te"},  // MS-AMP: states of fewer bits
        of_step({sharded_settings, "fp8.*", either, states}),
        {sharded_settings, "freeze_parameters*", less, frozen},
        {sharded_settings, "trainable_parameters*", either, frozen},
        {sharded_settings, "target_regex", either, adapters},
        {sharded_settings, "target_parameters", more, adapters},
        {sharded_settings, "model.lora_config.target_parameters", more, adapters},
        {sharded_settings, "unfreeze_vit_layers", more, "layers of a frozen encoder that are trained"},
        {sharded_settings, "unfreeze_topk_*", more, "layers of a frozen part that are trained"},
        // 2U1/Qwen-VL-Series-Finetune 93fef86 src/train/train_sft.py find_target_linear_names
        {sharded_settings, "num_lora_modules", less, adapters, "-1"},
        {sharded_settings, "lora_namespan_exclude", either, "adapters that the head and the embedding have, or not",
         "['lm_head', 'embed_tokens']|['embed_tokens', "
         "'lm_head']|['lm_head','embed_tokens']|['embed_tokens','lm_head']"},
        {sharded_settings, "unfreeze_lm_head", more, "a head of a frozen model that is trained"},
        {sharded_settings, "vit_gradient_checkpointing", more, "a tower whose blocks keep all", "true|True"},
        of_step({sharded_settings, "use_logits_to_keep", less, loss}),
        {sharded_settings, "zero_hpz_partition_size", more, "a second copy of the weights in every node"},
        {sharded_settings, "device_map", either, "layers of a model on several GPUs"},
        {sharded_settings, "ref_model", more, copy},
        {sharded_settings, "dpo_config.refer_model_precision", more, "a copy of the model in 32 bits", "bfloat16"},
        {sharded_settings, "reward_model", more, copy},
        {sharded_settings, "teacher_model", more, copy},
        {sharded_settings, "use_vllm", more, copy},
        {sharded_settings, "ref_adapters", more, copy},
        // LLaMA-Factory ff6d4d12 train/sft/workflow.py, trainer_utils.py create_ref_model
        {sharded_settings, "use_asft_loss", more, copy, {}, false, false, "finetuning_type", "lora"},
        {sharded_settings, "multi_turn_scheduler", more, "answers of several turns, longer than one"},
        {sharded_settings, "use_gym_env", more, "answers of several turns, longer than one"},
        {sharded_settings, "chord_sft_dataset", more, "samples that are trained beside the answers"},
        // LLaMA-Factory ff6d4d12 src/llamafactory/v1/plugins
        {sharded_settings, "dist_config.ep_size", either, "experts that FSDPTurbo shares out", "1"},
        {sharded_settings, "cp_mode", either, "another kind of sequence parallelism than counted", "ulysses"},
        {sharded_settings, "quant_config.name", less, "frozen weights of fewer bits"},
        {sharded_settings, "peft_config.use_dora", more, "DoRA keeps weights of its own"},
        {sharded_settings, "peft_config.adapter_name_or_path", either, adapters},
        {sharded_settings, "peft_config.freeze_*", less, frozen},
        // LLaMA-Factory ff6d4d12 hparams/training_args.py: fields of mcore_adapter's arguments alone
        {sharded_settings, "tensor_model_parallel_size", either, megatron_core},
        {sharded_settings, "pipeline_model_parallel_size", either, megatron_core},
        {sharded_settings, "expert_model_parallel_size", either, megatron_core},
        {sharded_settings, "use_distributed_optimizer", either, megatron_core},
        {sharded_settings, "recompute_granularity", either, megatron_core},
        of_step({sharded_settings, "torch_compile", either, "compiled kernels"}),
        of_step({sharded_settings, "train.torch_compile.enable", either, "compiled kernels"}),
        of_step({sharded_settings, "compile.enabled", either, "compiled kernels"}),
        of_step({sharded_settings, "train.accelerator.offload_config.enable_activation", less, host}),
        of_step({sharded_settings, "train.enable_activation_offload", less, host}),
        of_step({sharded_settings, "train.chunk_mbs_config.enable", less, "samples that run one after the other"}),
        {sharded_settings, "distributed.activation_checkpointing_scope", more, "layers that keep all", "all"},
        {sharded_settings, "distributed.offload_policy*", less, host},
        {sharded_settings, "distributed.pipeline.pp_schedule_csv", either, "an order of a file"},
        {sharded_settings, "model.*num_hidden_layers", either, network},
        {sharded_settings, "model.*num_nextn_predict_layers", more, "blocks of multi-token prediction"},
        {sharded_settings, "distributed.pipeline.module_fqns_per_model_part", either, "stages that list modules"},
        {sharded_settings, "optimizer.exp_avg_dtype", less, states, "torch.float32"},
        {sharded_settings, "optimizer.exp_avg_sq_dtype", less, states, "torch.float32"},
        {sharded_settings, "peft.match_all_linear", either, adapters, "true|True"},
        {sharded_settings, "freeze_config.freeze_embeddings", less, frozen},
        {sharded_settings, "deepspeed.zero_optimization.zero_hpz_partition_size", more,
         "a second copy of the weights in every node", "1"},
        {sharded_settings, "deepspeed.zero_optimization.mics_shard_size", more, "shards among a part of the GPUs",
         "-1"},
        {sharded_settings, "deepspeed.zero_optimization.zero_quantized_*", either, states},
        {sharded_settings, "deepspeed.bf16.bf16_master_weights_and_grads", less, states},
        {sharded_settings, "deepspeed.bf16.bf16_optimizer_states", less, states},
        {sharded_settings, "deepspeed.torch_autocast.enabled", either, states},
        {sharded_settings, "deepspeed.fp8.*", either, states},
        {sharded_settings, "deepspeed.sequence_parallel_size", less, "a sequence that GPUs share", "1"},
        {sharded_settings, "deepspeed.pipeline.*", either, "a pipeline"},
        of_step({sharded_settings, "fsdp_config.activation_cpu_offload", less, host}),
        {sharded_settings, "accelerate.fsdp_auto_wrap_policy", more, "one unit for the whole model",
         "TRANSFORMER_BASED_WRAP|SIZE_BASED_WRAP"},
    };
}

// "encoder-*-model-parallel-size" and "freeze-*".
bool is_like(std::string_view name, std::string_view pattern) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return name == pattern;
    const std::string_view begin = pattern.substr(0, star), end = pattern.substr(star + 1);
    return name.size() >= begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end);
}

bool is_among(std::string_view value, std::string_view choices) {
    for (std::size_t at = 0; at <= choices.size();) {
        const std::size_t end = std::min(choices.find('|', at), choices.size());
        if (choices.substr(at, end - at) == value) return true;
        at = end + 1;
    }
    return false;
}

bool changes_nothing(const MemorySetting& row, const std::vector<std::string>& values) {
    constexpr std::array<std::string_view, 10> off{"false", "False", "0", "0.0", "null",
                                                   "None",  "none",  "",  "[]",  "no"};
    if (values.size() != 1) return false;
    const std::string& value = values.front();
    return std::find(off.begin(), off.end(), value) != off.end() ||
           (!row.harmless.empty() && is_among(value, row.harmless));
}

}  // namespace

bool is_of_step(const MemorySetting& row, const std::vector<std::string>& values) {
    if (row.step.empty() || row.step == "*") return !row.step.empty();
    const auto begins = [&](std::string_view word) {
        for (std::size_t at = 0; at <= row.step.size();) {
            const std::size_t end = std::min(row.step.find('|', at), row.step.size());
            if (word.starts_with(row.step.substr(at, end - at - 1))) return true;
            at = end + 1;
        }
        return false;
    };
    bool all = !values.empty();
    for (std::string_view list : values) {
        while (!list.empty()) {
            const std::size_t end = std::min(list.find_first_of("[], "), list.size());
            all = all && (end == 0 || begins(list.substr(0, end)));
            list.remove_prefix(std::min(list.size(), end + 1));
        }
    }
    return all;
}

std::string_view name_of(Effect effect) {
    constexpr std::array<std::string_view, 3> names{"less", "more", "either"};
    return names[static_cast<std::size_t>(effect)];
}

std::span<const MemorySetting> memory_settings() {
    static const Rows rows = [] {
        Rows all;
        for (const Rows& some :
             {tuning_rows(), network_rows(), step_rows(), bridge_rows(), titan_rows(), sharded_memory_rows()})
            all.insert(all.end(), some.begin(), some.end());
        return all;
    }();
    return rows;
}

const MemorySetting* memory_setting(Dialect dialect, const std::string& name, const std::vector<std::string>& values,
                                    const NamedModel& model) {
    for (const MemorySetting& row : memory_settings()) {
        if (row.dialect != dialect || !is_like(name, row.name)) continue;
        if (!row.only.empty() && (values.size() != 1 || !is_among(values.front(), row.only))) continue;
        const bool harmless =
            changes_nothing(row, values) || (row.of_sizes && (row.of_tower ? model.has_encoders : model.is_named));
        return harmless ? nullptr : &row;
    }
    return nullptr;
}

}  // namespace pipeweaver::frameworks
