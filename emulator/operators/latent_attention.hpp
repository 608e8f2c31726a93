// Attention whose queries, keys and values are made of compressed ones: latent (MLA) and factored (MFA).
//
// Shapes       operators.hpp. The down projections work on a GPU's own positions and what they give is gathered, as
//              Megatron-LM does: fewer columns than the hidden size.
#pragma once

#include "emulator/operators/operator_builder.hpp"

namespace pipeweaver::emulator {

[[nodiscard]] bool has_compressed_attention(const workloads::Architecture& network);

/// Columns of queries and keys as they are attended to, over all tensor parallel GPUs: latent 2 a (n + e), factored
/// (a + k t) d.
[[nodiscard]] std::int64_t compressed_attention_columns(const workloads::Architecture& network, const Layout& layout);

/// Adds the attention over m positions, projections and collectives included. Flash attention is asked for with heads
/// of n + e, to which the narrower values are padded. Pre: has_compressed_attention(network).
void compressed_attention(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout,
                          std::int64_t m, const Attended& attended);

}  // namespace pipeweaver::emulator
