// The model that a launch says, and a model that is named beside it.
#pragma once

#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/said.hpp"
#include "pipeweaver/launch/titan.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <string>
#include <vector>

namespace pipeweaver::launch {

struct SaidModel {
    workloads::Model model;
    std::vector<std::string> assumed{};  ///< sentences
};

/// The language model whose sizes the launch says; microbatches are of its sequence and micro batch. Throws
/// Error{input} naming the setting that is missing, or layers of experts that no model file says. Pre: `launch` is
/// settled().
[[nodiscard]] SaidModel model_of(const MegatronLaunch& launch);

/// The launch with the sizes of the model's language model where it says none. Throws Error{input} where it says
/// others.
[[nodiscard]] MegatronLaunch with_model(MegatronLaunch launch, const workloads::Model& model);
[[nodiscard]] TitanLaunch with_model(TitanLaunch launch, const workloads::Model& model);

/// How encoders lie, where the launch cannot say it.
struct AskedEncoders {
    std::string built_by{};     ///< "split" as the language model, else one of frameworks::builders(); empty: not asked
    bool deals_images = false;  ///< workloads::Built::deals is switched on
};

/// The model of that name, its encoders as the launch's program builds them; of a program without a row, as the target
/// that stands for its dialect. Throws Error{input} for a framework without a row for it, or without a switch to deal.
[[nodiscard]] workloads::Model named_model(const std::string& name, const SaidLaunch& said,
                                           const AskedEncoders& encoders = {});

/// The launch with the rules of how its program builds the model's encoders. Pre: named_model() made the model.
[[nodiscard]] MegatronLaunch with_encoders(MegatronLaunch launch, const workloads::Model& model,
                                           const SaidLaunch& said);

/// Whether the model has modules in front of or behind its language model.
[[nodiscard]] bool is_multimodal(const workloads::Model& model);

/// "[1]*3+[0,1]*2", "2" or "[0,1]" for `layers` layers, as --moe-layer-freq and --linear-attention-freq have it: 1 for
/// each layer that has experts. Throws Error{input} for what is none, or of another length.
[[nodiscard]] std::vector<bool> layer_pattern(const std::string& text, std::int64_t layers, const std::string& name);

}  // namespace pipeweaver::launch
