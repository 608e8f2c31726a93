// Linear attention: projections, convolution, rule, gated norm, and what context parallel GPUs exchange around it.
// Shapes: operators.hpp.
#pragma once

#include "emulator/operators/operator_builder.hpp"

namespace pipeweaver::emulator {

/// Adds the linear attention of a block over m positions of packed sequences. Pre: network.linear.
void linear_attention(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout,
                      std::int64_t m, const std::vector<std::int64_t>& lengths);

}  // namespace pipeweaver::emulator
