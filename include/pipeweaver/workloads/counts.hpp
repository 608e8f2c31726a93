// Parameters, FLOPs and activation bytes of a network: the one place that derives them.
//
// Notation     h hidden, F ffn, a heads, k kv_heads, d head_dim, V vocab; m positions; p pairs of positions that attend
//              to each other.
//
// Matrices     attention: q h x ad, k and v h x kd, output ad x h.
//              latent (MLA, DeepSeek-V2 section 2.1): q h x r, r x a(n+e) (or h x a(n+e)); key and value h x (c+e),
//              c x a(n+v); output av x h, with r q_lora_rank, c kv_lora_rank, n nope, e rope, v value head size.
//              factored (MFA, Step-3 section 2): q h x s, s x ad; one key and value head; output ad x h.
//              feed-forward: 2 hF, gated 3 hF; MoE: router h x experts, each expert and the shared ones likewise;
//              experts of a latent width l: 2 hl for all of them, each with l for h.
//              cross attention of a diffusion transformer: q and output h x h, k and v c x h, c its source's width.
//              MMDiT: a double block has attention, feed-forward and a modulation of h x 6h for each of two streams;
//              a single block fuses attention and feed-forward and has a modulation of h x 3h (Flux, SD3); where the
//              network says its modulation, all blocks have that.
//              embeddings of layers of width e (Gemma 3n): a table of V x e a layer and h x e, in front of the first;
//              in each h x e and e x h.
//              head (SimpleMLPAdaLN of MAR and NextStep-1): blocks of 2 hF and a modulation of h x 3h.
//              output gate of an attention: h x ad. linear attention, with k key heads and g value heads of n and v:
//              input h x (2 kn + 2 gv + 2g), of Mamba-2 one g; output gv x h.
//
// FLOPs        a multiply-add is two. A position passes every matrix of its layer once: 2 m (matrices it passes).
//              Scores are p products of length d for each head, and so is their use: 4 a d p; latent attention has
//              keys of n+e and values of v: 2 a (n+e+v) p. Modulations of a diffusion transformer are computed once a
//              sample, not once a position: not counted. Linear attention, as Megatron-LM counts it (training.py):
//              8 g n v a position for delta nets (four products with the state), 7 g n v for Mamba-2, and 2 c columns
//              for a convolution of c positions. Backward is twice the forward. Recomputation is never counted
//              ("model FLOPs", as in PaLM's MFU, arXiv 2204.02311 appendix B).
// Example      Llama 3 8B, one layer: q and output 2 x 4096 x 4096, k and v 2 x 4096 x 1024, feed-forward
//              3 x 4096 x 14336: 218,103,808 parameters. A sample of 8192 tokens, causal: p = 8192^2 / 2. Forward:
//              2 x 8192 x 218,103,808 + 4 x 32 x 128 x 33,554,432 = 3.573e12 + 0.550e12 = 4.123e12.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <span>
#include <string>

namespace pipeweaver::workloads {

/// Parameters in matrices (no norms, biases, position embeddings; a tied embedding once), whole network.
[[nodiscard]] std::int64_t matrix_parameters(const Architecture& architecture);

/// All parameters: matrices, norms, biases (networks without gated feed-forward have one after every matrix but the
/// embeddings; others only where qkv_bias says so), position embeddings of vision encoders of fixed size.
[[nodiscard]] std::int64_t all_parameters(const Architecture& architecture);

/// Whether block `layer` of an MoE network holds experts.
[[nodiscard]] bool is_moe_layer(const Architecture& architecture, std::int64_t layer);

/// Whether block `layer` attends to another module's output instead of its own positions: with c of L layers the
/// blocks L/c - 2, 2 L/c - 2, ... (Llama 3.2 vision: 3, 8, 13, ...).
[[nodiscard]] bool is_cross_layer(const Architecture& architecture, std::int64_t layer);

/// What makes blocks of one network differ. Blocks of one kind have equal parameters, FLOPs, activations and operators.
enum class BlockKind : std::uint8_t {
    plain,             ///< attention to all of the own sequence (and beside it to a context, where the network has one)
    windowed,          ///< attention inside windows
    cross,             ///< attention to another module's output alone
    experts,           ///< a mixture of experts
    double_stream,     ///< MMDiT: context and positions have weights of their own and attend jointly
    single_stream,     ///< MMDiT: context and positions as one sequence; attention and feed-forward side by side
    linear,            ///< linear attention, then a feed-forward
    parallel,          ///< linear attention and attention side by side, then a feed-forward
    parallel_experts,  ///< the same, then a mixture of experts
    linear_experts,    ///< linear attention, then a mixture of experts
    linear_alone,      ///< the rest: one part of a block, with one norm
    attention_alone,
    dense_alone,
    experts_alone
};
[[nodiscard]] BlockKind block_kind(const Architecture& architecture, std::int64_t layer);

/// The share of its own pairs that block `layer` leaves out; 0: its attention is dense.
[[nodiscard]] double sparsity_of(const Architecture& architecture, std::int64_t layer);

/// What block `layer` consists of.
struct BlockParts {
    bool attention = true;  ///< to positions of its own or of another module
    bool linear = false;    ///< linear attention
    bool dense = true;      ///< a feed-forward
    bool experts = false;   ///< a mixture of experts

    std::int64_t norms() const { return (attention || linear ? 1 : 0) + (dense || experts ? 1 : 0); }
};
[[nodiscard]] BlockParts block_parts(const Architecture& architecture, std::int64_t layer);

/// Width of what routed experts read and write. Pre: architecture.moe.
[[nodiscard]] std::int64_t expert_width(const Architecture& architecture);

/// Whether every block has a cross attention beside its self attention (diffusion transformers).
[[nodiscard]] bool has_cross_beside_self(const Architecture& architecture);

/// Matrix parameters of one repeated block. `layer` matters where blocks differ (MoE, MMDiT).
[[nodiscard]] std::int64_t layer_parameters(const Architecture& architecture, std::int64_t layer);

/// Matrix parameters by what tensor and expert parallelism do with them.
struct LayerParameterParts {
    std::int64_t split = 0;    ///< divided by heads or columns
    std::int64_t copied = 0;   ///< whole on every tensor parallel GPU: routers, projections of latent experts and of
                               ///< layers' embeddings, and the down projections of latent and factored attention (with
                               ///< the latter's one key and value head)
    std::int64_t experts = 0;  ///< routed experts, all of them: whole ones are shared out

    std::int64_t common(std::int64_t tp) const { return split / tp + copied; }  ///< on one GPU, of what is no expert's
};

/// The parameters of block `layer` by these parts, which add up to layer_parameters().
[[nodiscard]] LayerParameterParts layer_parameter_parts(const Architecture& architecture, std::int64_t layer);

/// Parameters of the adapters beside block `layer`, but for its routed experts, of which a tensor parallel GPU has the
/// thin matrix on the side that the adapted one is split on in parts, the other whole.
[[nodiscard]] LayerParameterParts adapter_parameters(const Architecture& architecture, std::int64_t layer,
                                                     const Adapters& adapters);

/// Parameters of one pair of adapters for each matrix of a routed expert of block `layer`; 0: it has none.
[[nodiscard]] std::int64_t expert_adapter_parameters(const Architecture& architecture, std::int64_t layer,
                                                     const Adapters& adapters);

/// How many of the block's matrices have adapters, those of routed experts left out.
[[nodiscard]] std::int64_t adapted_matrices(const Architecture& architecture, std::int64_t layer,
                                            const Adapters& adapters);

/// One of every shape of weight among blocks of a network with experts: attention, with `dense` blocks their
/// feed-forward, with `experts` one expert and all shared ones (of one shape); routers left out. Pre: architecture.moe.
[[nodiscard]] LayerParameterParts weight_shapes(const Architecture& architecture, bool dense, bool experts);

/// Matrix parameters of block `layer` that one position passes: of an MoE's experts only the top_k chosen, of an
/// MMDiT's two streams one, of a diffusion transformer no modulation, of cross attention the query and output.
[[nodiscard]] std::int64_t active_layer_parameters(const Architecture& architecture, std::int64_t layer);

/// Parameters in front of the first block: of the token embedding and of those that layers have of their own; of the
/// token embedding alone; and of the output head (0 where tied or absent).
[[nodiscard]] std::int64_t embedding_parameters(const Architecture& architecture);
[[nodiscard]] std::int64_t token_embedding_parameters(const Architecture& architecture);
[[nodiscard]] std::int64_t head_parameters(const Architecture& architecture);

/// Pairs of positions that attend to each other over packed pieces of these lengths, block-diagonal: sum s_i^2, causal
/// half of it. With a layer: as that block does, in windowed blocks at most `window` for each position.
[[nodiscard]] double attention_pairs(const Architecture& architecture, std::span<const std::int64_t> lengths);
[[nodiscard]] double attention_pairs(const Architecture& architecture, std::int64_t layer,
                                     std::span<const std::int64_t> lengths);

/// Forward FLOPs of the rule and the convolution of a linear attention over `tokens` positions, its matrices left out.
[[nodiscard]] double linear_rule_flops(const LinearAttention& linear, double tokens);

/// What the cross attention of a block reads.
struct Context {
    double tokens = 0;  ///< positions of the source
    double pairs = 0;   ///< pairs of a position and one of the source that it attends to
};

/// Forward FLOPs of block `layer` over `tokens` positions and `pairs` attention pairs. MMDiT: `tokens` counts the
/// positions of both streams. Blocks with cross attention add the keys and values of `context`.
[[nodiscard]] double layer_flops(const Architecture& architecture, std::int64_t layer, double tokens, double pairs,
                                 const Context& context = {});

/// Parameters of the projections in front of the blocks of multi-token prediction, 2h x h each.
[[nodiscard]] std::int64_t prediction_parameters(const Architecture& architecture);

/// Forward FLOPs of the output head (0 where absent; a tied head counts), once more for each block of multi-token
/// prediction, with its projection, and of the one product that makes embeddings of layers.
[[nodiscard]] double head_flops(const Architecture& architecture, double tokens);

/// Parameters in the matrices of block `layer` that are applied to a sample's conditioning vector (in a head: to a
/// position's).
[[nodiscard]] std::int64_t modulation_parameters(const Architecture& network, std::int64_t layer);

/// "vit 0.41 B frozen, llm 32.76 B parameters": of each module, without projectors, and of the teacher's;
/// with adapters it is not frozen.
[[nodiscard]] std::string parameters_by_module(const Model& model);

/// Parameters of an edge's projector.
[[nodiscard]] std::int64_t projector_parameters(const ModelEdge& edge);

}  // namespace pipeweaver::workloads
