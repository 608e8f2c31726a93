// NeMo AutoModel: `automodel FILE.yaml --model.x y`, `automodel finetune llm -c FILE.yaml` before 0.4.
#include "frameworks/sharded_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

namespace {

using L = ShardedLaunch;

constexpr std::string_view automodel_name = "NeMo AutoModel";
constexpr std::string_view automodel_source =
    "NVIDIA-NeMo/Automodel 0.5.0 (36044ad3) nemo_automodel/components/distributed/{config,mesh_utils,parallelizer}.py, "
    "components/distributed/pipelining/config.py, components/moe/parallelizer.py, _transformers/infrastructure.py, "
    "recipes/_dist_utils.py, components/training/step_scheduler.py, components/utils/model_utils.py, "
    "components/datasets/vlm/collate_fns.py, components/datasets/llm/packed_sequence.py";

// Those whose samples are all of a length; others cut them if they are told to (components/datasets/llm/squad.py,
// chat_dataset.py, column_mapped_text_instruction_dataset.py, agent_chat.py; own ones are not known).
constexpr std::string_view datasets =
    "nemo_automodel.components.datasets.llm.mock_iterable_dataset.MockIterableDataset=false|"
    "nemo_automodel.components.datasets.llm.megatron_dataset.MegatronPretraining=false|"
    "nemo_automodel.components.datasets.llm.nanogpt_dataset.NanogptDataset=false|*=true";

// The model keeps the checkpoint's precision, and torch's Adam states with it (docs/guides/mixed-precision-training).
constexpr std::array rows_of_automodel{
    ShardedRow{"model.pretrained_model_name_or_path", &L::model},
    ShardedRow{"model.config.pretrained_model_name_or_path", &L::model},
    ShardedRow{"model.torch_dtype", &L::dtype, "auto",
               "torch.float32=float32|torch.bfloat16=bfloat16|bf16=bfloat16|fp32=float32"},
    ShardedRow{"step_scheduler.local_batch_size", &L::micro_batch, "1"},
    ShardedRow{"step_scheduler.global_batch_size", &L::global_batch},
    ShardedRow{"distributed.strategy", &L::strategy, "fsdp2"},
    ShardedRow{"distributed.tp_size", &L::tp},
    ShardedRow{"distributed.cp_size", &L::ring},
    ShardedRow{"distributed.pp_size", &L::pp},
    ShardedRow{"distributed.ep_size", &L::ep},
    ShardedRow{"distributed.dp_replicate_size", &L::replicate},
    ShardedRow{"distributed.sequence_parallel", &L::splits_norms},
    ShardedRow{"distributed.activation_checkpointing", &L::recompute_kind, "false"},
    ShardedRow{"distributed.reshard_after_forward", &L::layers_reshard},
    ShardedRow{"distributed.moe.reshard_after_forward", &L::experts_reshard, "false"},
    ShardedRow{"distributed.pipeline.pp_schedule", &L::schedule, "1f1b"},
    ShardedRow{"distributed.pipeline.pp_microbatch_size", &L::pipeline_batch, "1"},
    ShardedRow{"distributed.pipeline.layers_per_stage", &L::layers_per_stage},
    ShardedRow{"distributed.pipeline.round_virtual_stages_to_pp_multiple", &L::rounds_stages},
    ShardedRow{"dataset.seq_length", &L::length},
    ShardedRow{"dataset.seq_len", &L::length},
    ShardedRow{"dataset._target_", &L::may_be_longer, "", datasets},
    ShardedRow{"dataset.truncation", &L::cuts, "",
               "do_not_truncate=false|False=false|false=false|None=false|null=false|=false|*=true"},
    ShardedRow{"dataset.padding", &L::padding},
    ShardedRow{"dataloader.collate_fn.max_length", &L::padded_length},
    ShardedRow{"packed_sequence.packed_sequence_size", &L::packed_length},
    ShardedRow{"packed_sequence.pack_size", &L::packed_length},
    ShardedRow{"", &L::pads_packs, "true"},
    ShardedRow{"", &L::leaves_alone, "true"},  // moe/parallelizer.py parallelize_model: ep_shard_enabled
    ShardedRow{"freeze_config.freeze_vision_tower", &L::freeze_tower},
    ShardedRow{"freeze_config.freeze_language_model", &L::freeze_language},
    ShardedRow{"peft.dim", &L::lora_rank, "0"},
    ShardedRow{"peft.target_modules", &L::lora_targets},
    ShardedRow{"optimizer._target_", &L::optimizer, "torch.optim.AdamW"},
    ShardedRow{"optimizer.master_weights", &L::keeps_masters},
    ShardedRow{"optimizer.store_param_remainders", &L::keeps_remainders},
    ShardedRow{"loss_fn._target_", &L::fused_loss, "",
               "nemo_automodel.components.loss.linear_ce.FusedLinearCrossEntropy=true|*=false"},
    ShardedRow{"loss_fn.fp32_upcast", &L::upcasts_logits},  // components/loss/masked_ce.py
    ShardedRow{"model.attn_implementation", &L::attention, "", "flash_attention_2=flash"},
    ShardedRow{"model.backend.attn", &L::attention, "", "torch=eager"},  // of its own implementations
    ShardedRow{"distributed.defer_fsdp_grad_sync", &L::deferred, "4", "true=4|True=4|false=0|False=0"},
};

}  // namespace

std::vector<Entry> automodel_entries() {
    Entry entry;
    entry.name = automodel_name;
    entry.dialect = Dialect::sharded_settings;
    entry.framework = "nemo-automodel";
    entry.programs = {"automodel finetune",     "automodel pretrain",       "automodel",
                      "nemo_automodel.cli.app", "llm_finetune/finetune.py", "vlm_finetune/finetune.py"};
    entry.model = "model.pretrained_model_name_or_path";
    entry.checkpoints = {"model.config.pretrained_model_name_or_path", "model.config"};  // without weights
    entry.packs = "packed_sequence.packed_sequence_size";
    entry.marks = {"step_scheduler.local_batch_size", "step_scheduler.global_batch_size",
                   "model.pretrained_model_name_or_path"};
    entry.bounds_items = true;  // components/datasets/vlm/collate_fns.py: a cut image is an error, as in packs
    entry.data = {"dataset.path_or_dataset", "dataset.dataset_name", "dataset.path_or_dataset_id"};
    entry.texts = {{"dataset._target_", "nemo_automodel.components.datasets.llm."}};
    entry.source = automodel_source;
    return {entry};
}

std::vector<ShardedTrainer> automodel_trainers() { return {{automodel_name, {{automodel_source, rows_of_automodel}}}}; }

}  // namespace pipeweaver::frameworks
