// ms-swift beside Megatron: `swift sft`, `swift pt` and `swift rlhf` on DeepSpeed, FSDP2 or PyTorch's own replicas.
#include "frameworks/sharded_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

namespace {

using L = ShardedLaunch;

constexpr std::string_view sharded_swift_name = "ms-swift on DeepSpeed or FSDP";
constexpr std::string_view sharded_swift_source =
    "modelscope/ms-swift 3602360a swift/arguments/{sft,tuner}_args.py, base_args/{model,data,template}_args.py, "
    "trainers/arguments.py";

// Defaults as these files have them; the checkpoint's precision is the model's, and mixed precision's.
constexpr std::array rows_of_sharded_swift{
    ShardedRow{"model", &L::model},
    ShardedRow{"tuner_type", &L::tuner, "lora"},
    ShardedRow{"train_type", &L::tuner},
    ShardedRow{"lora_rank", &L::lora_rank, "8"},
    ShardedRow{"target_modules", &L::lora_targets, "all-linear"},
    ShardedRow{"freeze_llm", &L::freeze_language, "false"},
    ShardedRow{"freeze_vit", &L::freeze_tower, "true"},
    ShardedRow{"freeze_aligner", &L::freeze_projector, "true"},
    ShardedRow{"max_length", &L::length},
    ShardedRow{"packing", &L::packs, "false"},
    ShardedRow{"packing_length", &L::packed_length},
    ShardedRow{"padding_free", &L::flattens},
    ShardedRow{"max_pixels", &L::image_pixels},
    ShardedRow{"sequence_parallel_size", &L::sequence},
    ShardedRow{"deepspeed_autotp_size", &L::tp},
    ShardedRow{"torch_dtype", &L::dtype, "auto"},
    ShardedRow{"attn_impl", &L::attention, "",
               "flash_attn=flash|flash_attention_2=flash|flash_attention_3=flash|flash_attention_4=flash"},
    ShardedRow{"gradient_checkpointing", &L::recompute, "true"},
    ShardedRow{"per_device_train_batch_size", &L::micro_batch, "1"},
    ShardedRow{"gradient_accumulation_steps", &L::accumulation},
    ShardedRow{"rlhf_type", &L::stage},
    ShardedRow{"task_type", &L::task},
    ShardedRow{"beta", &L::reference},
    ShardedRow{"max_completion_length", &L::answer_length, "512"},
    ShardedRow{"use_vllm", &L::by_engine},
    ShardedRow{"vllm_max_model_len", &L::engine_length},
    ShardedRow{"", &L::joins_pairs, "true"},  // swift/dataset/packing.py create_packed_idx
    ShardedRow{"vllm_mode", &L::engine},
    ShardedRow{"vllm_gpu_memory_utilization", &L::engine_share, "0.9"},
    ShardedRow{"vllm_tensor_parallel_size", &L::engine_tp},
    ShardedRow{"sleep_level", &L::sleep},
    ShardedRow{"offload_model", &L::frees_weights},
    ShardedRow{"offload_optimizer", &L::frees_states},
    ShardedRow{"", &L::mixes_as_loaded, "true"},
    // Until 2.6, in the words of then; what is written has the first name of each.
    ShardedRow{"sft_type", &L::tuner},
    ShardedRow{"batch_size", &L::micro_batch},
    ShardedRow{"model_id_or_path", &L::model},
    ShardedRow{"", &L::rings_rest, "true"},  // swift/sequence_parallel/ulysses.py
    ShardedRow{"dtype", &L::dtype, "", "AUTO=auto|bf16=bfloat16|fp16=float16|fp32=float32"},
};

}  // namespace

std::vector<Entry> sharded_swift_entries() {
    Entry entry;
    entry.name = sharded_swift_name;
    entry.dialect = Dialect::sharded_settings;
    entry.framework = "ms-swift";
    entry.programs = {"swift sft",        "swift pt",        "swift rlhf",
                      "swift/cli/sft.py", "swift/cli/pt.py", "swift/cli/rlhf.py"};
    entry.model = "model";
    entry.checkpoints = {"model_id_or_path", "model_type"};  // until 2.6
    entry.packs = "packing";
    entry.by_variables = {{"MAX_PIXELS", "max_pixels"}};
    entry.bounds_items = true;  // base_args/template_args.py: longer ones are deleted
    entry.unbounds = {
        {"truncation_strategy", "left"}, {"truncation_strategy", "right"}, {"truncation_strategy", "truncation_left"}};
    entry.program_defaults = {{"swift rlhf", "rlhf_type", "dpo"}, {"swift/cli/rlhf.py", "rlhf_type", "dpo"}};
    entry.unbounds_unless = {{"rlhf_type", "grpo", "truncation_strategy"}};  // rlhf_args.py _init_grpo: prompts are cut
    entry.spreads_layers = true;  // swift/cli/main.py use_torchrun, model/utils.py get_default_device_map
    entry.data = {"dataset", "cached_dataset"};
    entry.remakes = {"external_plugins", "custom_register_path", "custom_dataset_info", "columns"};
    entry.lengthens = {"system", "response_prefix", "model_name", "model_author"};
    // 2.6.1 swift/llm/argument.py: no tower is frozen unless that is said, and samples have a length.
    for (const std::string_view tuner : {"full", "lora"}) {
        entry.implied.push_back({"sft_type", tuner, "freeze_vit", "false"});
        entry.implied.push_back({"sft_type", tuner, "max_length", "2048"});
    }
    entry.source = sharded_swift_source;
    return {entry};
}

std::vector<ShardedTrainer> sharded_swift_trainers() {
    return {
        {sharded_swift_name,
         {{sharded_swift_source, rows_of_sharded_swift}, training_arguments(), accelerate_file(), deepspeed_file()}}};
}

}  // namespace pipeweaver::frameworks
