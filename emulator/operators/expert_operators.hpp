// The feed-forward of a layer with a mixture of experts.
#pragma once

#include "emulator/operators/operator_builder.hpp"

namespace pipeweaver::emulator {

/// Adds router, exchanges, experts and shared experts for m positions of a tensor parallel group, each of whose GPUs
/// routes those it holds. Shapes and assumptions: operators.hpp. Pre: network.moe.
void expert_feed_forward(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout,
                         std::int64_t m);

}  // namespace pipeweaver::emulator
