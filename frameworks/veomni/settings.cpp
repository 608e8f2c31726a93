// VeOmni: `bash train.sh tasks/train_vlm.py FILE.yaml --train.x y`, with the names of 0.1.0 beside those since.
#include "frameworks/sharded_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

namespace {

using L = ShardedLaunch;

constexpr std::string_view veomni_name = "VeOmni";
constexpr std::string_view veomni_now = "ByteDance-Seed/VeOmni d9774494 veomni/arguments/arguments_types.py, trainer/";
constexpr std::string_view veomni_before = "ByteDance-Seed/VeOmni v0.1.0 veomni/utils/arguments.py";

constexpr std::array rows_of_veomni{
    ShardedRow{"model.model_path", &L::model},
    ShardedRow{"model.config_path", &L::model},
    ShardedRow{"data.data_type", &L::stage, "", "dpo=dpo|*=sft"},
    ShardedRow{"data.max_seq_len", &L::length, "2048"},
    ShardedRow{"data.mm_configs.image_max_pixels", &L::image_pixels},
    ShardedRow{"train.micro_batch_size", &L::micro_batch, "1"},
    ShardedRow{"train.global_batch_size", &L::global_batch},
    ShardedRow{"train.dyn_bsz", &L::packs, "true"},
    ShardedRow{"train.freeze_vit", &L::freeze_tower, "false"},
    ShardedRow{"train.optimizer.type", &L::optimizer, "adamw"},
    ShardedRow{"train.accelerator.fsdp_config.fsdp_mode", &L::strategy, "fsdp2"},
    ShardedRow{"train.accelerator.fsdp_config.reshard_after_forward", &L::reshards},
    ShardedRow{"train.accelerator.fsdp_config.offload", &L::offload_weights, "", "true=cpu|false=none"},
    ShardedRow{"train.accelerator.fsdp_config.mixed_precision.enable", &L::masters, "true"},
    ShardedRow{"train.accelerator.dp_replicate_size", &L::replicate},
    ShardedRow{"train.accelerator.dp_shard_size", &L::shard},
    ShardedRow{"train.accelerator.tp_size", &L::tp},
    ShardedRow{"train.accelerator.pp_size", &L::pp},
    ShardedRow{"train.accelerator.ep_size", &L::ep},
    ShardedRow{"train.accelerator.ulysses_size", &L::sequence},
    ShardedRow{"train.accelerator.cp_size", &L::ring},
    ShardedRow{"train.gradient_checkpointing.enable", &L::recompute, "true"},
    ShardedRow{"model.ops_implementation.attn_implementation", &L::attention, "flash_attention_2",
               "flash_attention_2=flash"},
    ShardedRow{"model.ops_implementation.cross_entropy_loss_implementation", &L::fused_loss, "true",
               "eager=false|*=true"},
    ShardedRow{"model.lora_config.rank", &L::lora_rank, "0"},
    ShardedRow{"model.lora_config.lora_modules", &L::lora_targets},
    ShardedRow{"", &L::tower_lora_rank, "0"},
    ShardedRow{"", &L::dtype, "bfloat16"},
    ShardedRow{"", &L::deferred, "0"},
    ShardedRow{"", &L::copies_always, "true"},  // text_dpo_trainer.py _build_reference_model
    ShardedRow{"", &L::fuses_pairs, "true"},    // trainer/text_dpo_trainer.py concatenated_forward
    ShardedRow{"", &L::joins_pairs, "true"},  // data/dynamic_batching.py: one that is longer than the budget lies alone
};

constexpr std::array older_rows_of_veomni{
    ShardedRow{"train.data_parallel_mode", &L::strategy},
    ShardedRow{"train.enable_full_shard", &L::reshards},
    ShardedRow{"train.enable_fsdp_offload", &L::offload_weights, "", "true=cpu|false=none"},
    ShardedRow{"train.enable_mixed_precision", &L::masters},
    ShardedRow{"train.data_parallel_replicate_size", &L::replicate},
    ShardedRow{"train.data_parallel_shard_size", &L::shard},
    ShardedRow{"train.tensor_parallel_size", &L::tp},
    ShardedRow{"train.pipeline_parallel_size", &L::pp},
    ShardedRow{"train.expert_parallel_size", &L::ep},
    ShardedRow{"train.ulysses_parallel_size", &L::sequence},
    ShardedRow{"train.context_parallel_size", &L::ring},
    ShardedRow{"train.enable_gradient_checkpointing", &L::recompute},
    ShardedRow{"train.optimizer", &L::optimizer},
    ShardedRow{"model.attn_implementation", &L::attention, "", "flash_attention_2=flash"},
};

}  // namespace

std::vector<Entry> veomni_entries() {
    Entry entry;
    entry.name = veomni_name;
    entry.dialect = Dialect::sharded_settings;
    entry.framework = "veomni";
    entry.programs = {"tasks/train_vlm.py",           "tasks/train_text.py",
                      "tasks/train_torch.py",         "tasks/omni/train_qwen_vl.py",
                      "tasks/omni/train_qwen2_vl.py", "tasks/multimodal/omni/train_qwen2_vl.py"};
    entry.programs.push_back("tasks/train_text_dpo.py");
    entry.program_defaults = {{"tasks/train_text_dpo.py", "data.data_type", "dpo"}};
    entry.model = "model.model_path";
    entry.packs = "train.dyn_bsz";
    entry.marks = {"data.max_seq_len", "train.accelerator.fsdp_config.fsdp_mode", "train.data_parallel_mode"};
    // data/chat_template.py has templates of text, data/multimodal/multimodal_chat_template.py others.
    entry.texts = {
        {"data.data_type", "plaintext"}, {"data.chat_template", "chatml"}, {"data.chat_template", "default"}};
    entry.source = veomni_now;
    return {entry};
}

std::vector<ShardedTrainer> veomni_trainers() {
    return {{veomni_name, {{veomni_now, rows_of_veomni}, {veomni_before, older_rows_of_veomni}}}};
}

}  // namespace pipeweaver::frameworks
