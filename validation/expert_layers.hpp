// Layers with latent attention (MLA) and experts: products and traffic.
//
// Notation     m tokens, h hidden, a heads, n, e, v the parts of a head that have no position, carry it, and are
// values,
//              r and c ranks of query and of keys and values, E experts, k chosen, F their width, G that of the shared.
//              For tensor parallelism of 1; DeepSeek-V2, arXiv 2405.04434, section 2.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <vector>

namespace pipeweaver::validation {

/// Pre: latent attention with a query rank. Feed-forward of block `layer`: its own, or router and shared experts; the
/// traffic of norms and activations holds that of the chosen experts. Routed products: grouped_gemm_flops.
[[nodiscard]] std::vector<emulator::Operator> latent_layer_operators(const workloads::Architecture& network,
                                                                     const emulator::PassShape& shape,
                                                                     emulator::PassKind pass, std::int64_t layer);

/// Forward FLOPs of the chosen experts: 6 m k h F (gated). Pre: network.moe.
[[nodiscard]] double grouped_gemm_flops(const workloads::Architecture& network, std::int64_t positions);

/// Bytes of the tokens that go to their experts, on one GPU: 2 m k h.
[[nodiscard]] double dispatched_bytes(const workloads::Architecture& network, std::int64_t positions);

}  // namespace pipeweaver::validation
