// Parameters, FLOPs and activation bytes of a network: the one place that derives them.
//
// Notation     h hidden, F ffn, a heads, k kv_heads, d head_dim, V vocab; m tokens; p pairs of positions that attend to
// each
//              other (block-diagonal over packed sequences: sum s_i^2, causal: half of it).
// FLOPs        a multiply-add is two. Forward of one layer: 2 m (matrix parameters of the layer) + 4 a d p. Backward is
//              twice the forward. Recomputation is never counted ("model FLOPs", as in PaLM's MFU).
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <span>

namespace pipeweaver::workloads {

/// Parameters in matrices (no norms, biases, position embeddings; a tied embedding once), whole network.
[[nodiscard]] std::int64_t matrix_parameters(const Architecture& architecture);

/// All parameters: matrices, norms, biases.
[[nodiscard]] std::int64_t all_parameters(const Architecture& architecture);

/// Matrix parameters of one repeated block. `layer` matters where blocks differ (MoE, MMDiT, added cross attention).
[[nodiscard]] std::int64_t layer_parameters(const Architecture& architecture, std::int64_t layer);

/// Matrix parameters of block `layer` that one token passes (of an MoE's experts only the top_k chosen).
[[nodiscard]] std::int64_t active_layer_parameters(const Architecture& architecture, std::int64_t layer);

/// Parameters of the token embedding, and of the output head (0 where tied or absent).
[[nodiscard]] std::int64_t embedding_parameters(const Architecture& architecture);
[[nodiscard]] std::int64_t head_parameters(const Architecture& architecture);

/// Pairs of positions that attend to each other over packed sequences of these lengths.
[[nodiscard]] double attention_pairs(const Architecture& architecture, std::span<const std::int64_t> lengths);

/// Forward FLOPs of block `layer` over `tokens` positions and `pairs` attention pairs.
[[nodiscard]] double layer_flops(const Architecture& architecture, std::int64_t layer, double tokens, double pairs);

/// Forward FLOPs of the output head (0 where absent; a tied head counts).
[[nodiscard]] double head_flops(const Architecture& architecture, double tokens);

}  // namespace pipeweaver::workloads
