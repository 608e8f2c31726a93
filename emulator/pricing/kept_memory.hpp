// What a framework keeps of a pass besides workloads/activations.hpp, by its recipe.
#pragma once

#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/workloads/model.hpp"

namespace pipeweaver::emulator {

/// What block `layer` keeps over m positions besides layer_activations(), per GPU, in bf16:
///   2 m F/t          a gate's activation in a kernel of its own (experts: 2 m (G + j f)/t)
///   2 m V/t          a delta net's normed output, where its gate is a kernel of its own
///   2 m h (1 - 1/t)  each, the gathered inputs of the products for queries, keys, values and up
///   masks m h        each, dropout after attention and feed-forward; without sequence parallelism not divided
///   8 m h (1 - 1/t)  without sequence parallelism, inputs and outputs of two norms, which are then not divided;
///                    Layout::all_positions is without it
[[nodiscard]] Bytes kept_besides(const workloads::Architecture& network, std::int64_t layer, std::int64_t positions,
                                 const Layout& layout, const Recipe& recipe);

/// Of it, a gate's activation: what selective recomputation leaves out.
[[nodiscard]] Bytes kept_gate(const workloads::Architecture& network, std::int64_t layer, std::int64_t positions,
                              std::int64_t tp, const Recipe& recipe);

/// The logits while the loss is computed, per GPU, with all copies: KeptBytes::logit m V/t.
[[nodiscard]] Bytes kept_logits(const workloads::Architecture& network, std::int64_t positions, std::int64_t tp,
                                const Recipe& recipe);

}  // namespace pipeweaver::emulator
