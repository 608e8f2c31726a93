// Hugging Face's Trainer: its own arguments, and scripts that have more.
#include "frameworks/sharded_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

namespace {

using L = ShardedLaunch;

constexpr std::string_view words_of_attention =
    "disabled=eager|fa2=flash|fa3=flash|flash_attn=flash|flash_attention_2=flash|flash_attention_3=flash|"
    "flash_attention_4=flash|kernels-community/flash-attn2=flash";

constexpr std::array rows_of_arguments{
    ShardedRow{"per_device_train_batch_size", &L::micro_batch, "8"},
    ShardedRow{"gradient_accumulation_steps", &L::accumulation, "1"},
    ShardedRow{"bf16", &L::bf16},
    ShardedRow{"fp16", &L::fp16},
    ShardedRow{"gradient_checkpointing", &L::recompute, "false"},
    ShardedRow{"deepspeed", &L::deepspeed},
    ShardedRow{"fsdp", &L::fsdp},
    ShardedRow{"fsdp_config", &L::fsdp_config},
    ShardedRow{"fsdp_config.reshard_after_forward", &L::reshards},
    ShardedRow{"fsdp_config.activation_checkpointing", &L::recompute_by_fsdp},
    ShardedRow{"optim", &L::optimizer, "adamw_torch"},
    ShardedRow{"use_liger_kernel", &L::fused_loss},
    ShardedRow{"model_name_or_path", &L::model},
    ShardedRow{"attn_implementation", &L::attention, "", words_of_attention},
};

// TRL's scripts and many others; of a script of one's own these names are custom.
constexpr std::array of_scripts{
    ShardedRow{"model_max_length", &L::length},
    ShardedRow{"max_seq_length", &L::length},
    ShardedRow{"max_length", &L::length},
    ShardedRow{"block_size", &L::length},
    ShardedRow{"torch_dtype", &L::dtype},
    ShardedRow{"dtype", &L::dtype},
    ShardedRow{"packing", &L::packs, "false"},
    ShardedRow{"padding_free", &L::flattens},
    ShardedRow{"use_peft", &L::tuner, "false", "true=lora|True=lora|=lora|false=full|False=full"},
    ShardedRow{"lora_r", &L::lora_rank},
    ShardedRow{"lora_target_modules", &L::lora_targets},
};

constexpr std::array of_qwen_vl{
    ShardedRow{"tune_mm_llm", &L::freeze_language, "false", "", false},
    ShardedRow{"tune_mm_mlp", &L::freeze_projector, "false", "", false},
    ShardedRow{"tune_mm_vision", &L::freeze_tower, "false", "", false},
    ShardedRow{"model_max_length", &L::length, "512"},
    ShardedRow{"max_pixels", &L::image_pixels, "451584"},
    ShardedRow{"data_packing", &L::packs, "false"},
    ShardedRow{"data_flatten", &L::flattens},
    ShardedRow{"lora_enable", &L::tuner, "false", "true=lora|True=lora|=lora|false=full|False=full"},
    ShardedRow{"lora_r", &L::lora_rank, "64"},
    ShardedRow{"", &L::lora_targets, "q_proj,k_proj,v_proj,o_proj"},
    ShardedRow{"", &L::tower_lora_rank, "0"},
    ShardedRow{"", &L::attention, "flash"},
    ShardedRow{"", &L::dtype, "bfloat16"},
};

constexpr std::array of_internvl{
    ShardedRow{"freeze_llm", &L::freeze_language, "false"},
    ShardedRow{"freeze_backbone", &L::freeze_tower, "false"},
    ShardedRow{"freeze_mlp", &L::freeze_projector, "false"},
    ShardedRow{"use_llm_lora", &L::lora_rank, "0"},
    ShardedRow{"use_backbone_lora", &L::tower_lora_rank, "0"},
    ShardedRow{"", &L::lora_leaves_others, "true"},
    ShardedRow{"grad_checkpoint", &L::recompute, "true"},
    ShardedRow{"max_seq_length", &L::length, "8192"},
    ShardedRow{"use_packed_ds", &L::packs, "false"},
    ShardedRow{"max_packed_tokens", &L::packed_length},
    ShardedRow{"use_liger", &L::fused_loss},
    ShardedRow{"", &L::attention, "flash"},
    ShardedRow{"", &L::dtype, "bfloat16"},
};

constexpr std::string_view qwen_series =
    "2U1/Qwen-VL-Series-Finetune 93fef86 src/params.py, src/train/train_sft.py, src/train/train_dpo.py";

// Nothing cuts samples: `max_seq_length` is read by none of it. The stage is the program's.
constexpr std::array of_qwen_series{
    ShardedRow{"model_id", &L::model, "Qwen/Qwen2-VL-7B-Instruct"},
    ShardedRow{"stage", &L::stage, "sft"},
    ShardedRow{"freeze_llm", &L::freeze_language, "false"},
    ShardedRow{"freeze_vision_tower", &L::freeze_tower, "false"},
    ShardedRow{"freeze_merger", &L::freeze_projector, "false"},
    ShardedRow{"lora_enable", &L::tuner, "false", "true=lora|True=lora|=lora|false=full|False=full"},
    ShardedRow{"lora_rank", &L::lora_rank, "64"},
    ShardedRow{"vision_lora", &L::tower_lora_rank, "0", "false=0|False=0|true=null|True=null|=null"},  // or lora_rank
    ShardedRow{"image_max_pixels", &L::image_pixels, "12845056"},
    ShardedRow{"use_liger", &L::fused_loss, "true"},
    ShardedRow{"disable_flash_attn2", &L::attention, "false", "false=flash|False=flash|true=sdpa|True=sdpa|=sdpa"},
    ShardedRow{"", &L::unfused_model, "Qwen3"},  // it raises an error there if it is told to use Liger
    ShardedRow{"", &L::lora_leaves_others, "true"},
    ShardedRow{"", &L::dtype, "mixed"},
};

constexpr std::string_view transformers = "huggingface/transformers 00349ae8 src/transformers/training_args.py";

Entry script_entry(std::string_view name, std::vector<std::string_view> programs, std::string_view source) {
    Entry entry;
    entry.name = name;
    entry.dialect = Dialect::sharded_settings;
    entry.framework = "hugging-face-trainer";
    entry.programs = std::move(programs);
    entry.model = "model_name_or_path";
    entry.packs = "packing";
    entry.source = source;
    return entry;
}

// Others have programs that are called so, too.
Entry qwen_series_entry() {
    Entry entry = script_entry("Qwen-VL-Series-Finetune", {}, qwen_series);
    entry.common_programs = {"src/train/train_sft.py", "src/train/train_dpo.py"};
    entry.marks = {"freeze_merger"};
    entry.model = "model_id";
    for (const std::string_view on : {"True", "true"})
        entry.implied.push_back({"lora_enable", on, "lora_namespan_exclude", "all"});
    entry.program_defaults = {{"src/train/train_dpo.py", "stage", "dpo"}};
    return entry;
}

}  // namespace

ShardedTable training_arguments() { return {transformers, rows_of_arguments}; }

std::vector<Entry> hugging_face_entries() {
    std::vector<Entry> all{
        script_entry("Qwen-VL's finetuning", {"qwenvl/train/train_qwen.py", "train_qwen.py"},
                     "QwenLM/Qwen3-VL bf0baef1 qwen-vl-finetune/qwenvl/train/argument.py, 01b33782 train_qwen.py"),
        script_entry("InternVL's finetuning", {"internvl_chat_finetune.py", "internvl_chat_pretrain.py"},
                     "OpenGVLab/InternVL 2410d1db internvl_chat/internvl/train/internvl_chat_finetune.py"),
        qwen_series_entry(), script_entry("Hugging Face's Trainer", {}, transformers)};
    Entry& any = all.back();
    any.named_by_program = true;
    any.turned_by_settings = {{"use_mca", example_of_mcore_adapter}};
    any.checkpoints = {"model_name", "model_id", "model_path", "model", "base_model"};  // names of their own
    any.names = "script";
    any.say = "as a flag of the launch";
    return all;
}

std::vector<ShardedTrainer> hugging_face_trainers() {
    return {{"Qwen-VL's finetuning",
             {{"QwenLM/Qwen3-VL bf0baef1 qwen-vl-finetune/qwenvl/train/argument.py", of_qwen_vl},
              training_arguments(),
              accelerate_file(),
              deepspeed_file()}},
            {"InternVL's finetuning",
             {{"OpenGVLab/InternVL 2410d1db internvl_chat/internvl/train/internvl_chat_finetune.py", of_internvl},
              training_arguments(),
              accelerate_file(),
              deepspeed_file()}},
            {"Qwen-VL-Series-Finetune",
             {{qwen_series, of_qwen_series}, training_arguments(), accelerate_file(), deepspeed_file()}},
            {"Hugging Face's Trainer",
             {{"huggingface/trl trl/trainer/sft_config.py, model_config.py", of_scripts},
              training_arguments(),
              accelerate_file(),
              deepspeed_file()}}};
}

}  // namespace pipeweaver::frameworks
