// LLaMA-Factory: `llamafactory-cli train FILE.yaml`, with the same names as flags.
#include "frameworks/sharded_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

namespace {

using L = ShardedLaunch;

constexpr std::string_view llama_factory_name = "LLaMA-Factory";
constexpr std::string_view factory_v1_name = "LLaMA-Factory v1";
constexpr std::string_view llama_factory_source =
    "hiyouga/LLaMA-Factory ff6d4d12 src/llamafactory/hparams/{model,data,finetuning}_args.py, parser.py, "
    "model/adapter.py";

// Defaults as hparams/*.py have them; trained weights are cast to 32 bits unless pure_bf16 (model/adapter.py).
constexpr std::array rows_of_llama_factory{
    ShardedRow{"stage", &L::stage, "sft"},
    ShardedRow{"pref_loss", &L::preference},
    ShardedRow{"finetuning_type", &L::tuner, "lora"},
    ShardedRow{"lora_rank", &L::lora_rank, "8"},
    ShardedRow{"lora_target", &L::lora_targets, "all"},
    ShardedRow{"additional_target", &L::whole_modules},
    ShardedRow{"freeze_vision_tower", &L::freeze_tower, "true"},
    ShardedRow{"freeze_multi_modal_projector", &L::freeze_projector, "true"},
    ShardedRow{"freeze_language_model", &L::freeze_language, "false"},
    ShardedRow{"cutoff_len", &L::length, "2048"},
    ShardedRow{"packing", &L::packs},
    ShardedRow{"neat_packing", &L::apart},
    ShardedRow{"pure_bf16", &L::all_16_bits},
    ShardedRow{"disable_gradient_checkpointing", &L::recompute, "false", "", false},
    ShardedRow{"enable_liger_kernel", &L::fused_loss},
    ShardedRow{"flash_attn", &L::attention, "auto", "disabled=eager|fa2=flash|fa3=flash"},
    ShardedRow{"image_max_pixels", &L::image_pixels, "589824"},
    ShardedRow{"sequence_parallel_size", &L::sequence},  // Qihoo360/360-LLaMA-Factory alone
    ShardedRow{"", &L::masters, "true"},
    ShardedRow{"", &L::dtype, "auto"},
};

constexpr std::string_view factory_v1_source =
    "hiyouga/LLaMA-Factory ff6d4d12 src/llamafactory/v1/{launcher.py, config/{model,training}_args.py, "
    "core/{base_trainer,model_engine}.py, trainers/, plugins/{model_plugins/peft,trainer_plugins/batching}.py, "
    "plugins/trainer_plugins/distributed/}";

// What USE_V1=1 trains with. The stage is the command's; `optim_config` is Muon's alone, kernels leave the logits.
constexpr std::array rows_of_factory_v1{
    ShardedRow{"stage", &L::stage, "sft"},
    ShardedRow{"pref_loss", &L::preference},
    ShardedRow{"model", &L::model},
    ShardedRow{"peft_config.name", &L::tuner, "full"},
    ShardedRow{"peft_config.r", &L::lora_rank, "8"},
    ShardedRow{"peft_config.target_modules", &L::lora_targets, "all"},
    ShardedRow{"peft_config.modules_to_save", &L::whole_modules},
    ShardedRow{"micro_batch_size", &L::micro_batch, "1"},
    ShardedRow{"global_batch_size", &L::global_batch},
    ShardedRow{"cutoff_len", &L::length, "2048"},
    ShardedRow{"batching_strategy", &L::packs, "normal",
               "normal=false|padding_free=false|dynamic_batching=true|dynamic_padding_free=true"},
    ShardedRow{"bf16", &L::bf16, "true"},
    ShardedRow{"enable_activation_checkpointing", &L::recompute, "true"},
    ShardedRow{"flash_attn", &L::attention, "sdpa", "flash_attention_2=flash"},
    ShardedRow{"dist_config.name", &L::strategy},
    ShardedRow{"dist_config.config_file", &L::deepspeed},
    ShardedRow{"dist_config.reshard_after_forward", &L::reshards},
    ShardedRow{"dist_config.offload_params", &L::offload_weights, "", "true=cpu|True=cpu|false=none|False=none"},
    ShardedRow{"cp_size", &L::sequence},
    ShardedRow{"mp_replicate_size", &L::replicate},
    ShardedRow{"mp_shard_size", &L::shard},
    ShardedRow{"optim_config.name", &L::optimizer, "torch.optim.AdamW"},
    ShardedRow{"init_config.name", &L::start, "init_on_default"},
    ShardedRow{"", &L::masters, "true"},
    ShardedRow{"", &L::casts_whole, "true"},
    ShardedRow{"", &L::dtype, "auto"},
    ShardedRow{"", &L::deferred, "0"},
};

Entry factory_v1() {
    Entry entry;
    entry.name = factory_v1_name;
    entry.dialect = Dialect::sharded_settings;
    entry.framework = "llama-factory";
    entry.programs = {
        "llamafactory-cli sft", "llamafactory-cli dpo", "llamafactory-cli rm", "lmf sft", "lmf dpo", "lmf rm"};
    entry.program_defaults = {{"llamafactory-cli dpo", "stage", "dpo"},
                              {"lmf dpo", "stage", "dpo"},
                              {"llamafactory-cli rm", "stage", "rm"},
                              {"lmf rm", "stage", "rm"}};
    entry.commands = "sft, dpo or rm";
    entry.model = "model";
    entry.packs = "batching_strategy";
    entry.marks = {"dist_config.name", "model_class", "peft_config.name", "init_config.name", "batching_strategy"};
    entry.bounds_items = true;  // core/utils/collation.py pad_and_truncate leaves out items that would be cut
    entry.source = factory_v1_source;
    return entry;
}

}  // namespace

std::vector<Entry> llama_factory_entries() {
    Entry entry;
    entry.name = llama_factory_name;
    entry.dialect = Dialect::sharded_settings;
    entry.framework = "llama-factory";
    entry.programs = {"llamafactory-cli train", "lmf train", "llamafactory/launcher.py"};
    entry.common_programs = {"src/train.py", "src/train_bash.py"};
    entry.model = "model_name_or_path";
    entry.packs = "packing";
    entry.marks = {"finetuning_type", "cutoff_len"};
    entry.refused_by = {"USE_MEGATRON_BRIDGE"};
    entry.turned_by = {{"USE_MCA", factory_on_megatron_core}, {"USE_V1", factory_v1_name}};
    entry.bounds_items = true;  // data/processor/processor_utils.py infer_seqlen; a cut image is an error
    entry.source = llama_factory_source;
    return {factory_v1(), entry};  // files of both have `cutoff_len`
}

std::vector<ShardedTrainer> llama_factory_trainers() {
    return {
        {llama_factory_name,
         {{llama_factory_source, rows_of_llama_factory}, training_arguments(), accelerate_file(), deepspeed_file()}},
        {factory_v1_name, {{factory_v1_source, rows_of_factory_v1}, deepspeed_file()}}};
}

}  // namespace pipeweaver::frameworks
