// Bytes that a training pass keeps for its backward: the one place that derives them.
//
// Notation     h hidden, F ffn, a heads, k kv_heads, d head_dim, t tensor parallel GPUs, m positions; bf16; flash
//              attention; sequence parallelism (what is not split by heads or columns is split by positions).
// Per layer    8 m h/t               inputs and outputs of the two norms
//              + 2 m (a + 2k) d/t    q, k, v
//              + 2 m a d/t           attention output, the projection's input
//              + 6 m F/t             gated: both halves of the up projection, and the activation;  plain: 4 m F/t
//              + 2 m (a + k) d/t     where queries and keys have norms of their own (qk_norm): the norms' inputs
//              Windows change nothing: a position has its query, key and value whatever it attends to.
// Output gate  of an attention: + 4 m a d/t (the gate, and the output behind it).
// Linear       instead of q, k, v and the attention output, with key columns K = kn, value columns V = gv, C positions
// attention    a chunk (docs/memory.md): delta nets + 2 m (2K + V)/t in front of the convolution, + 2 m (2K + V)/t
//              behind it, + 4 m gn/t queries and keys, normed and one a value head, + 6 m V/t gate, output, gated
//              output, + 2 m (C + 6) g/t the chunks' inverses and what heads decay and learn by. Mamba-2 + 2 m (2K +
//              2V + g)/t the input's columns, + 4 m V/t outputs in front of the gated norm and behind it: its
//              convolution and chunks are worked out again in the backward (mamba_split_conv1d_scan_combined).
//              Blocks of one part (attention, linear attention or feed-forward alone) have one norm: 4 m h/t.
// Precision    In fp32 (Execution::value_bytes) all of this is twice as much: the emulator multiplies, by module.
// Frozen       A frozen module that gradients pass through (behind a trained projector, say) needs none for its
//              weights: it keeps no outputs of norms and activation functions (recomputable_activations), of a plain
//              block 4 m h/t + 2 m F/t less. One that no gradient reaches keeps nothing: the block at work alone holds
//              anything.
// Diffusion    + 4 m h/t             outputs of attention and feed-forward in front of their gates
// transformers + 4 m h/t             outputs of the two norms in front of scale and shift, whose gradients need them
//              + 4 m h/t             cross attention: input and output of its norm
//              + 4 m a d/t           its queries, and its output before the projection
//              + 4 M k d/t           its keys and values; M positions of context, of width c
//              + 2 m a d/t + 2 M k d/t   qk_norm: inputs of the norms of its queries and keys
//              + 2 M c/t             the context itself, once for all blocks of a stage (context_input)
//              MMDiT: m counts both streams; a single-stream block has one norm and one gate: 8 m h/t less.
// Added cross  8 m h/t + 4 m a d/t + 6 m F/t (plain: 4 m F/t) + 4 M k d/t: queries alone are of the own positions
// attention
// Heads after  16 m h/t + 4 m F/t    input, output of the norm before and after its modulation, condition, shift, scale
// a backbone                         and gate, output in front of the gate; both sides of the activation
//              + 2 m (c + i)/t       before the first block: the condition and what is predicted (head_input)
// Predicted    blocks of multi-token prediction, each + 12 m h/t beside its block: inputs of the norms of its
// layers       embedding and of the hidden state, both normed side by side, inputs of the last norm and of the head
//              (Megatron-LM core_v0.16.1 core/transformer/multi_token_prediction.py)
//              Embedding, modulation vectors of a sample and statistics of rows are not counted. Blocks of ViT and
//              diffusion transformers are line by line in docs/memory.md, held to what PyTorch saves for them by
//              tests/python/torch/activations_torch_test.py. The one multimodal run that was measured is
//              LLaVA-1.5-7B's, with both networks frozen, in fp32: +0.9 %.
// Latent (MLA) instead of q, k, v and the attention output (r, c ranks, n, e, v sizes of a head's parts):
//              + 2 m (2r + 2c + e)/t  compressed queries and keys in front of and after their norms, and positions
//              + 2 m a (2(n + e) + n + 2v)/t   queries, keys, unpacked keys and values, values, output
// Factored     likewise: + 2 m 2s/t        compressed queries in front of and after their norm
// (MFA)        + 4 m a d/t + 4 m k d       queries and output; the shared keys and values, whole on every GPU
// Experts      instead of the feed-forward's (E experts, j of them chosen, of width f; G width of the shared ones):
//              + 6 m G/t + 2 m j (h + 3f)/t + 8 m E/t   plain: 4 m G/t and 2 m j (h + 2f)/t
//              A GPU gets as many copies as it sends (balanced routing): expert parallelism changes nothing.
// Between I    a linear layer's weight gradient needs the layer's input and its output's gradient (table 1 of "Zero
// and W        Bubble Pipeline Parallelism", arXiv 2401.10241: M_W = 32 s b h without tensor parallelism):
//              4 m h/t + 2 m a d/t + 2 m F/t       inputs: of qkv, up (after a norm), of the projection, of down
//              + 2 m (a + 2k) d/t + 2 m F1/t       gradients of qkv and up; F1 = 2F if gated, else F
//              + 4 m h                             gradients of projection and down, gathered for the input gradient
//                                                  and kept so: W gathers nothing that B would not gather
//              Cross attention: + 2 m h/t + 4 m a d/t + 4 M k d/t + 2 m h, and the context itself once (context_input).
//              MMDiT, single stream: one norm and one output: 2 m h/t and 2 m h less.
//              Added cross attention: gradients of queries alone, 2 m a d/t, and + 4 M k d/t of keys and values.
//              Heads: inputs 4 m h/t + 2 m F/t, gradients 6 m h/t + 2 m F/t + 2 m h.
//              Latent: inputs 2 m (h + r + c)/t + 2 m a v/t, gradients 2 m (r + c + e)/t + 2 m a (2n + e + v)/t (a
//              query of one matrix has no r). Factored: inputs 2 m (h + s)/t + 2 m a d/t, gradients 2 m (s + 2 k d)/t
//              + 2 m a d/t. Both 2 m h for the output as above.
//              Experts: inputs 2 m h/t + 2 m G/t + 2 m j (h + f)/t, gradients 2 m G1/t + 2 m j (h + f1)/t + 4 m E/t
//              (f1, G1 as F1), and 2 m h only where there are shared ones, whose output's gradient is gathered.
//              What is recomputed for I is kept for W all the same: nothing is recomputed twice.
// Source       Megatron-LM with Transformer Engine; the sum was within 0.2 % of measured peaks of 31 dense B200 runs
//              (SimuMax, gated networks; the plain form is not validated), and within 0.6 % of 12 of DeepSeek-V2 and V3
//              without tensor parallelism.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/workloads/model.hpp"

namespace pipeweaver::workloads {

/// What the first repeated block keeps over m positions, per GPU. Pre: tp >= 1, positions >= 0.
[[nodiscard]] Bytes layer_activations(const Architecture& network, std::int64_t positions, std::int64_t tp);

/// What block `layer` keeps for its backward, with `context` positions beside its own. MMDiT: `positions` counts both
/// streams.
[[nodiscard]] Bytes layer_activations(const Architecture& network, std::int64_t layer, std::int64_t positions,
                                      std::int64_t context, std::int64_t tp);

/// What is between the two thin matrices of each pair of adapters of block `layer`, per GPU: 2 m r a matrix of rank r,
/// of routed experts 2 m j r/t.
[[nodiscard]] Bytes adapter_activations(const Architecture& network, std::int64_t layer, const Adapters& adapters,
                                        std::int64_t positions, std::int64_t tp);

/// Outputs of the attentions of block `layer`, linear ones too, per GPU: 2 m a d/t each, a cross attention beside a
/// self attention included. Context parallelism by all-to-alls keeps them once more.
[[nodiscard]] Bytes attention_outputs(const Architecture& network, std::int64_t layer, std::int64_t positions,
                                      std::int64_t tp);

/// The part of layer_activations() that is outputs of norms and activation functions: it can be computed again from
/// what is kept beside it at the cost of memory traffic alone. 2 m h/t a norm, twice that where it is modulated, 2 m
/// F/t (experts: 2 m (G + j f)/t).
[[nodiscard]] Bytes recomputable_activations(const Architecture& network, std::int64_t layer, std::int64_t positions,
                                             std::int64_t tp);

/// Whether of block `layer` every second product can run again: full attention of its own, without a diffusion
/// transformer's modulation.
[[nodiscard]] bool has_second_products(const Architecture& network, std::int64_t layer);

/// The part of layer_activations() that every second product gives, and what is made of it by memory traffic alone,
/// per GPU, beside recomputable_activations(): 2 m k d/t keys, without tensor parallelism 2 m h the attention's output
/// in the second norm's input (else its reduce-scatter is kept), of a gated feed-forward 2 m F/t its up half; with
/// qk_norm 2 m (a + k) d/t more, normed queries and keys. 0 without has_second_products().
[[nodiscard]] Bytes second_product_activations(const Architecture& network, std::int64_t layer, std::int64_t positions,
                                               std::int64_t tp);

/// What weight gradients are made of, per GPU; see "Between I and W".
struct WeightGradientNeeds {
    Bytes inputs;     ///< of linear layers
    Bytes gradients;  ///< of their outputs
};
[[nodiscard]] WeightGradientNeeds weight_gradient_needs(const Architecture& network, std::int64_t layer,
                                                        std::int64_t positions, std::int64_t context, std::int64_t tp);

/// The context that the blocks of a stage read, per GPU: 2 M c/t; 0 for MMDiT, whose blocks carry it along.
[[nodiscard]] Bytes context_input(const Architecture& network, std::int64_t context, std::int64_t tp);

/// What a head's first stage keeps beside its blocks, per GPU: 2 m (c + i)/t, c the condition's width, i the values
/// that are predicted; 0 for other networks.
[[nodiscard]] Bytes head_input(const Architecture& network, std::int64_t positions, std::int64_t tp);

/// The block's input, per GPU: what full recomputation keeps, and what goes to the next stage. 2 m h/t.
[[nodiscard]] Bytes layer_input(const Architecture& network, std::int64_t positions, std::int64_t tp);

/// Taken while the backward of block `layer` runs and given back at its end, per GPU: the gradient of the up
/// projection, 4 m F/t, of experts 4 m j f/t.
[[nodiscard]] Bytes layer_backward_workspace(const Architecture& network, std::int64_t layer, std::int64_t positions,
                                             std::int64_t tp);

/// What blocks of multi-token prediction keep beside their blocks and logits, per GPU: 12 m h/t each.
[[nodiscard]] Bytes prediction_activations(const Architecture& network, std::int64_t positions, std::int64_t tp);

/// Kept by the output head between forward and backward, per GPU: bf16 logits, 2 m V/t.
[[nodiscard]] Bytes head_activations(const Architecture& network, std::int64_t positions, std::int64_t tp);

/// Taken while the head's backward runs, per GPU: gathered input and its gradient, 6 m h.
[[nodiscard]] Bytes head_backward_workspace(const Architecture& network, std::int64_t positions);

}  // namespace pipeweaver::workloads
