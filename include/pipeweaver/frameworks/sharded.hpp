// Sharded trainers: every GPU trains the whole model on its own samples, and DeepSpeed or FSDP shares out what it
// holds. What such a launch says, as one struct, and the settings of each trainer that say it, as tables: a correction
// is a row.
//
// Units        samples, tokens, pixels, layers, GPUs: numbers; buckets are in values, as DeepSpeed counts them.
// Determinism  Tables alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pipeweaver::frameworks {

struct ShardedLaunch {
    using Number = std::optional<std::int64_t>;
    using Flag = std::optional<bool>;
    using Texts = std::vector<std::string>;

    // Who shares out what among copies
    std::string deepspeed{};    ///< a file, or a name that the trainer knows; empty: no DeepSpeed
    std::string fsdp{};         ///< words such as "full_shard offload", a file, or a name; empty: no FSDP
    std::string fsdp_config{};  ///< a file
    std::string accelerate{};   ///< the file of `accelerate launch`
    std::string launcher{};     ///< of that file: "FSDP", "DEEPSPEED", "MULTI_GPU"
    std::string strategy{};     ///< of VeOmni and NeMo AutoModel: "fsdp2", "ddp", ...
    Number zero{};              ///< DeepSpeed's stage
    bool reshards = true;       ///< FSDP frees gathered weights after a forward; false: ZeRO 2
    Flag layers_reshard{};      ///< the same where it depends on degrees; none: without a pipeline
    Flag experts_reshard{};     ///< the same of a model whose experts are shared out, without `layers_reshard`
    bool leaves_alone = false;  ///< FSDP leaves weights that no other GPU has a copy of as they are
    std::string offload_optimizer{}, offload_weights{};  ///< the device; "none" and empty: none
    Number reduce_bucket{}, sub_group{}, live_weights{};
    bool two_buckets = false;                  ///< one is filled while the other is reduced
    std::string gradient_dtype{};              ///< in which DeepSpeed adds gradients up; empty: the model's
    Number said_batch{}, said_accumulation{};  ///< of DeepSpeed's file, which must be the trainer's
    Flag said_bf16{}, said_fp16{};             ///< likewise; none: the trainer's

    // Degrees
    std::int64_t tp = 1, pp = 1, ep = 1;
    bool splits_norms = false;  ///< tensor parallel GPUs share out positions where they do not share out columns
    std::int64_t sequence = 1;  ///< GPUs that share a sample's positions by exchanging heads (Ulysses)
    bool rings_rest = false;    ///< of `sequence`, what does not divide the key and value heads rings
    std::int64_t ring = 1;      ///< that do so by passing keys and values round
    std::string schedule{};     ///< of a pipeline, as torch.distributed.pipelining calls it
    Number pipeline_batch{};    ///< samples of a pipeline's microbatch, of the `micro_batch` that it splits; none: all
    Number layers_per_stage{};  ///< none: a stage a rank, or two where the schedule takes several
    std::string rounds_stages{};  ///< stages to a multiple of the ranks: "up", "down"; else others are refused
    Number replicate{};           ///< groups that each hold all shards; none: one
    Number shard{};               ///< GPUs of such a group; none: those that are left

    // The batch
    std::int64_t micro_batch = 1;
    Number accumulation{};  ///< microbatches of a step; none: of `global_batch`
    Number global_batch{};
    Number length{};          ///< of the longest sample; none: not said
    Number packed_length{};   ///< of a packed sample, where it is another; 0: nothing is packed
    Number padded_length{};   ///< to which each sample is padded, or cut; none: to none
    std::string padding{};    ///< NeMo AutoModel: "max_length" pads each sample to `length`
    bool pads_packs = false;  ///< packed samples are padded to their length
    /// Samples are cut to `length` where `cuts` says so alone; false: each is as long as it; none: no longer than it.
    Flag may_be_longer{};
    Flag cuts{};
    Flag packs{};           ///< samples are joined up to the length
    bool flattens = false;  ///< samples of a microbatch lie in a row, without padding
    bool apart = false;     ///< packed samples do not attend to each other
    Number image_pixels{};  ///< larger images are scaled down to so many

    // Precision
    bool bf16 = false, fp16 = false;
    Flag launched_bf16{};          ///< by `accelerate launch`: counts where fp16 is not on
    bool mixes_as_loaded = false;  ///< without bf16 and fp16 products are in the precision of `dtype`
    bool all_16_bits = false;      ///< trained weights stay in 16 bits without DeepSpeed, their states too
    bool masters = false;          ///< without DeepSpeed trained weights are cast to 32 bits
    bool casts_whole = false;      ///< LLaMA-Factory's v1: what is trained whole has 32 bits, FSDP alone mixes in bf16
    /// In which the model is loaded; "auto": the checkpoint's; "mixed": that of bf16 and fp16; empty: not known.
    std::string dtype{};
    std::string start{};  ///< of v1: "init_on_default" loads the model whole on every GPU before it is shared out
    Number deferred = 2;  ///< bytes of a gradient that FSDP adds up whole over microbatches; 0: it shares out each
    std::string optimizer = "adamw";
    std::string file_optimizer{};   ///< of DeepSpeed's file, in place of it
    bool keeps_masters = false;     ///< the optimizer has 32-bit weights beside those of 16 bits
    bool keeps_remainders = false;  ///< of these only what 16 bits do not have

    // What is kept for the backward
    Flag recompute{};
    bool recompute_selective = false;  ///< of a block only what is cheap
    std::string recompute_kind{};      ///< of NeMo AutoModel: "full", "selective", "true", "false"
    bool recompute_by_fsdp = false;
    bool fused_loss = false;      ///< logits are worked out in pieces and not kept
    std::string unfused_model{};  ///< of models whose name has this none are
    bool upcasts_logits = true;   ///< the loss takes them in 32 bits; false: in 16
    std::string attention{};      ///< "eager" keeps scores; others do not

    // What is trained
    std::string stage{};         ///< "sft", "pt", of training_stages(), or another, of which it is not known
    std::string task{};          ///< ms-swift: "seq_cls" has a head of classes; empty, "causal_lm": the vocabulary's
    std::string tuner = "full";  ///< "lora", "freeze", ...
    Number lora_rank{};
    Texts lora_targets{};      ///< empty, "all", "all-linear": all linear layers
    Texts whole_modules{};     ///< trained whole beside adapters
    Number rated_rank{};       ///< of AdaLoRA's adapters before it prunes them
    bool rates = false;        ///< beside each adapter lies how much it matters
    Number tower_lora_rank{};  ///< of an encoder that has adapters of its own; none: as the language model; 0: none
    bool lora_leaves_others = false;  ///< beside adapters, modules without any are trained unless they are frozen
    bool freeze_language = false, freeze_tower = false, freeze_projector = false;

    std::string model{};  ///< as the trainer names it

    // Of a stage that learns from answers
    std::string reference{};     ///< how far the model may go from a copy of it as it was; "0": there is none
    std::string preference{};    ///< LLaMA-Factory: the loss of stage "dpo", some of which have no such copy
    bool copies_always = false;  ///< such a copy lies beside adapters, too
    bool fuses_pairs = false;    ///< the loss of pairs is worked out in pieces, too
    bool joins_pairs = false;    ///< packing counts both of a pair; one that is longer than the length lies alone
    Number answer_length{};      ///< of answers that are generated, behind prompts as long as `length`
    Number engine_length{};      ///< of a prompt with its answer, at most
    bool by_engine = false;      ///< they are generated by vLLM
    std::string engine{};        ///< where that is: "colocate", on the same GPUs; "server"
    std::string engine_share{};  ///< of a GPU's memory that it takes there
    std::int64_t engine_tp = 1;  ///< GPUs that share its weights
    std::int64_t sleep = 0;      ///< above 0 it gives up weights and caches while the model trains
    bool frees_weights = false;  ///< the trainer's lie on the host while answers are generated
    bool frees_states = false;   ///< likewise the optimizer's
};

/// How a trainer learns from answers.
struct TrainingStage {
    std::string_view name;
    std::int64_t rows = 1;   ///< sequences of a sample: 2, a chosen answer and a rejected one
    bool refers = false;     ///< to a copy of the model, which adapters are left out of where there are any
    bool generates = false;  ///< its answers itself
    bool distils = false;    ///< from a teacher's logits, which are kept of all microbatches of a step
};
/// Of ms-swift, LLaMA-Factory.
[[nodiscard]] std::span<const TrainingStage> training_stages();
[[nodiscard]] const TrainingStage* training_stage(std::string_view name);

/// Where a setting goes.
using ShardedMember = std::variant<std::int64_t ShardedLaunch::*, ShardedLaunch::Number ShardedLaunch::*,
                                   bool ShardedLaunch::*, ShardedLaunch::Flag ShardedLaunch::*,
                                   std::string ShardedLaunch::*, ShardedLaunch::Texts ShardedLaunch::*>;

/// A setting of a trainer. "auto" and null are as if it were not said.
struct ShardedRow {
    std::string_view setting;  ///< "per_device_train_batch_size", "train.micro_batch_size"
    ShardedMember member;
    std::string_view otherwise{};  ///< what the trainer takes where it is not said; empty: the member as it is
    std::string_view words{};      ///< "disabled=eager|fa2=flash": values that are called otherwise in the struct
    bool value = true;             ///< what a flag that is on sets
};

/// Rows from one place. Of several tables that have a setting the first counts.
struct ShardedTable {
    std::string_view source;  ///< repository, commit or version, files
    std::span<const ShardedRow> rows;
};

/// The settings of an entry. Those of files that a launch names have the file's sort in front: "deepspeed.",
/// "fsdp_config.", "accelerate.".
struct ShardedTrainer {
    std::string_view entry;  ///< of entries()
    std::vector<ShardedTable> tables;
};

[[nodiscard]] std::span<const ShardedTrainer> sharded_trainers();

/// The trainer of an entry; null: none.
[[nodiscard]] const ShardedTrainer* sharded_trainer(std::string_view entry);

/// The row of a setting; null: the trainer's tables have none.
[[nodiscard]] const ShardedRow* sharded_row(const ShardedTrainer& trainer, std::string_view setting);

/// Whether any trainer has the setting.
[[nodiscard]] bool is_sharded_setting(std::string_view setting);

/// The setting by which a trainer is told a member, of those of a sort of file where `file` is one: "deepspeed.";
/// empty: by none.
[[nodiscard]] std::string_view setting_of(const ShardedTrainer& trainer, const ShardedMember& member,
                                          std::string_view file = {});

/// What the trainer calls a value of a setting: "fa2" for "flash". A flag's is "true" or "false".
[[nodiscard]] std::string word_of(const ShardedRow& row, std::string_view value);

/// Settings of a file that a framework or a model's repository ships, by its name.
struct KnownFile {
    std::string_view name;   ///< the end of its path, or a name that its trainer knows: "zero3"
    std::string_view entry;  ///< of entries(), which alone takes it so; empty: any
    std::vector<std::pair<std::string_view, std::string_view>> settings;
    std::string_view source;
};
[[nodiscard]] const KnownFile* known_file(std::string_view path, std::string_view entry);

/// What an optimizer keeps of a parameter beside its weight.
struct OptimizerStates {
    std::int64_t bytes = 0;  ///< beside a weight of 32 bits
    bool are_wide = false;   ///< beside one of 16 bits, too
};
/// None: the optimizer is not known.
[[nodiscard]] std::optional<OptimizerStates> states_of(std::string_view optimizer);

}  // namespace pipeweaver::frameworks
