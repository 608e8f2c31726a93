// What runs of all frameworks are made of.
#pragma once

#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/launch/fit.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeweaver::launch {

/// Says it in a sentence, and in short.
void assume(Run& run, Doubt doubt, std::string sentence);

/// A batch file is the step of all replicas as it is. Without an assignment samples are packed and handed out as a plan
/// has them in its rung "now".
void put_samples(const FitAsked& asked, std::int64_t sequence, std::int64_t microbatches, Run& run);

/// A launch that trains in a stage that is known decides whether a copy of the model lies beside it (Besides), whatever
/// the model's file says. `stage` may be empty.
void leave_reference_to(std::string_view stage, workloads::Model& model, Run& run);

/// Throws Error{input} for a model that no file may say.
void put_model(planner::WorkloadOptions& workload, const workloads::Model& model);

/// The model with how its encoders lie, and what is asked beside the launch.
void put_asked(planner::WorkloadOptions& workload, const FitAsked& asked, const workloads::Model& model);

void put_degrees(planner::WorkloadOptions& workload, const emulator::Layout& layout);

/// Throws Error{input} for buckets of gradients that are shared out.
void put_run_recipe(planner::WorkloadOptions& workload, emulator::Recipe recipe);

/// "--seq-length times --micro-batch-size".
[[nodiscard]] std::string product_of(const std::string& sequence, std::int64_t samples, std::string_view count);

/// Attention that is not fused, on one GPU.
struct Scored {
    std::int64_t ranks = 1;   ///< GPUs that share out heads
    std::int64_t tokens = 0;  ///< of a microbatch
    std::int64_t length = 0;  ///< of its sequences
    std::int64_t layers = 0;  ///< that keep theirs, of those with attention
};

/// What it holds at most: of each score a softmax in 32 bits and its copy in 16, and in the layer at work products and
/// gradients, too; keys and values in 16 bits for every head in place of groups (transformers
/// models/llama/modeling_llama.py eager_attention_forward; no more in Transformer Engine's and Megatron Core's own).
[[nodiscard]] Bytes scores_of(const workloads::Architecture& network, const Scored& of);

/// vLLM on the GPUs that train.
struct Engine {
    std::string says;   ///< the setting of its share
    std::string share;  ///< of a GPU's memory
    std::int64_t tp = 1, sleep = 0;
};
/// It has its share of the memory while it generates, and where it never sleeps all the time.
void put_engine(const Engine& engine, const FitAsked& asked, Run& run);

/// Says what is near alone: experts that are shared out in several groups of shards.
void say_copies(std::int64_t ep, Run& run);

/// Adds to a rank what `besides` says.
void add_besides(const Besides& besides, RankUse& rank);

}  // namespace pipeweaver::launch
