// Heads after a backbone: small networks that pass every position on its own (SimpleMLPAdaLN of MAR, arXiv 2406.11838,
// and NextStep-1, arXiv 2508.10711). Shapes: operators.hpp.
#pragma once

#include "emulator/operators/operator_builder.hpp"

namespace pipeweaver::emulator {

/// Adds a block over m positions: a modulation from the position's condition, and a feed-forward.
void head_block(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout, std::int64_t m);

/// In front of the first block: what is predicted, the time step and the condition become columns of the head's width.
[[nodiscard]] std::vector<Operator> head_inputs(const workloads::Architecture& network, const PassShape& shape,
                                                const Layout& layout, PassKind pass);

/// Behind the last block: a last modulation, and the prediction.
[[nodiscard]] std::vector<Operator> head_outputs(const workloads::Architecture& network, const PassShape& shape,
                                                 const Layout& layout, PassKind pass);

}  // namespace pipeweaver::emulator
