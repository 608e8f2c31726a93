// What encoders do over the images, clips or audio of a prompt: once where its answer begins to be generated, in every
// pass of inference, and in training, with a backward as far as gradients go.
//
// FLOPs        as workloads/counts.hpp has them; a backward is two forwards where the weights are trained, one where
//              gradients pass through them to what is trained in front of them, none where nothing is.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/model.hpp"

namespace pipeweaver::rl {

/// Of all modules in front of the backbone that read items, with the projectors behind them.
struct Encoders {
    double forward_flops = 0;   ///< of one pass over a prompt's items
    double training_flops = 0;  ///< forward and backward
    Bytes weights{};            ///< in bf16
    Bytes trained{};            ///< of these, what every step changes: handed over to those that generate
};

[[nodiscard]] Encoders encoders_of(const workloads::Model& model, const workloads::Sample& prompt);

}  // namespace pipeweaver::rl
