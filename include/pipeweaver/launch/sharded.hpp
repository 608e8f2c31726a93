// A launch of a sharded trainer: LLaMA-Factory, ms-swift on DeepSpeed or FSDP, VeOmni, NeMo AutoModel, scripts of
// Hugging Face's Trainer, with the files that it names.
//
// Files        are looked for as they are named, and beside the launch and in the folders above it.
#pragma once

#include "pipeweaver/frameworks/sharded.hpp"
#include "pipeweaver/launch/said.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

/// A file that the launch names and that is not there.
struct MissingFile {
    std::string setting;  ///< as a user writes it
    std::string file;
};

struct ShardedLaunch : frameworks::ShardedLaunch {
    const frameworks::ShardedTrainer* trainer = nullptr;
    std::vector<Setting> not_read{};  ///< files' settings among them, behind their sort: "deepspeed.x"
    std::vector<std::string> notes{};
    std::vector<MissingFile> missing{};
    bool uncut = false;  ///< a length of samples is said that they are not cut to; `length` is none

    // Of the model, filled in by with_model().
    std::int64_t heads = 0, kv_heads = 0, experts = 0, hidden = 0, layers = 0;

    bool is_fsdp() const { return !fsdp.empty(); }
    bool is_deepspeed() const { return !deepspeed.empty(); }
    bool has_adapters() const { return tuner == "lora"; }
    /// What copies share out, as ZeRO counts it: 0 nothing, 1 states, 2 gradients too, 3 weights too.
    int zero_stage() const;
    /// Replicas of the data.
    std::int64_t dp(std::int64_t gpus) const { return gpus / (tp * pp * sequence * ring); }
    /// Samples of a microbatch: of a pipeline the part into which it splits `micro_batch`.
    std::int64_t samples() const;
    /// Microbatches of a pipeline into which `micro_batch` is split; 0: it is no multiple. Without a pipeline 1.
    std::int64_t parts() const { return micro_batch % samples() == 0 ? micro_batch / samples() : 0; }
    /// Sequences of a microbatch: of a sample that is a pair two, unless they are joined.
    std::int64_t sequences() const;
    /// Tokens of a microbatch, at most; none: the length of a sample is not said.
    std::optional<std::int64_t> tokens() const;
    /// `micro_batch`es of a step; 0: the global batch is not a multiple.
    std::int64_t microbatches(std::int64_t gpus) const;
};

/// Reads what a launch says and the files that it names. Throws Error{input} for values that are none, Error{io}.
[[nodiscard]] ShardedLaunch read_sharded(const SaidLaunch& said);

/// The launch with what the rules ask of the model.
[[nodiscard]] ShardedLaunch with_model(ShardedLaunch launch, const workloads::Model& model);

/// The model with images no larger than the launch scales them down to.
[[nodiscard]] workloads::Model with_image_sizes(const ShardedLaunch& launch, workloads::Model model);

/// "--per_device_train_batch_size": how the trainer is told a member; empty: by nothing.
[[nodiscard]] std::string written(const ShardedLaunch& launch, const frameworks::ShardedMember& member);

}  // namespace pipeweaver::launch
