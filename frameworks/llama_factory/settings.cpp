// LLaMA-Factory: `llamafactory-cli train FILE.yaml`, with the same names as flags.
#include "frameworks/sharded_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

namespace {

using L = ShardedLaunch;

constexpr std::string_view llama_factory_name = "LLaMA-Factory";
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
    entry.refused_by = {"USE_MEGATRON_BRIDGE", "USE_V1"};
    entry.turned_by = {{"USE_MCA", factory_on_megatron_core}};
    entry.bounds_items = true;  // data/processor/processor_utils.py infer_seqlen; a cut image is an error
    entry.source = llama_factory_source;
    return {entry};
}

std::vector<ShardedTrainer> llama_factory_trainers() {
    return {
        {llama_factory_name,
         {{llama_factory_source, rows_of_llama_factory}, training_arguments(), accelerate_file(), deepspeed_file()}}};
}

}  // namespace pipeweaver::frameworks
