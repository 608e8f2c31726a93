// The operators of repeated blocks, by their kind.
#include "emulator/operators/expert_operators.hpp"
#include "emulator/operators/head_network.hpp"
#include "emulator/operators/latent_attention.hpp"
#include "emulator/operators/operator_builder.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::emulator {

using costdb::ElementwiseKind;
using workloads::Architecture;
using workloads::BlockKind;
using workloads::LinearAttention;
using workloads::LinearKind;

namespace {

// Widths of a block's matrices on one GPU.
struct Widths {
    Widths(const Architecture& network, const Layout& layout)
        : hidden(network.hidden),
          queries(network.heads * network.head_dim / layout.tp),
          // Grouped keys that are fewer than the tensor parallel ranks are copied to each.
          keys(std::max(network.kv_heads, layout.tp) * network.head_dim / layout.tp),
          up((network.gated ? 2 : 1) * network.ffn / layout.tp),
          down(network.ffn / layout.tp) {}

    std::int64_t hidden, queries, keys, up, down;
};

// Columns of queries and keys, over all tensor parallel GPUs.
std::int64_t attended_columns(const Architecture& network, const Layout& layout) {
    if (has_compressed_attention(network)) return compressed_attention_columns(network, layout);
    return (network.heads + std::max(network.kv_heads, layout.tp)) * network.head_dim;
}

// With a feed-forward of width `ffn` and, if `attends`, queries and keys. Megatron-LM's kernels beside unfused
// attention (vTrain's runs) keep dropout masks and biases apart.
std::int64_t norm_and_activation_traffic(const Architecture& network, const Layout& layout, std::int64_t m,
                                         std::int64_t norms, std::int64_t ffn, const Execution& execution,
                                         bool attends = true) {
    const std::int64_t up = network.gated ? 2 * ffn : ffn;
    const std::int64_t of_norms = (execution.fused_attention ? 10 : 11) * norms * m * network.hidden;
    const std::int64_t of_heads = ((execution.fused_attention ? 4 : 6) + (network.attention.qk_norm ? 4 : 0)) * m *
                                  (attends ? attended_columns(network, layout) : 0);
    return of_norms / (execution.sequence_parallel ? layout.tp : 1) + (of_heads + 2 * m * (up + ffn)) / layout.tp;
}

// Traffic of a backward over that of the forward.
double memory_bound_backward(const Execution& execution) { return execution.fused_attention ? 1.6 : 1.5; }

KernelShape norms_and_activation(const Architecture& network, const Layout& layout, std::int64_t m, std::int64_t norms,
                                 std::int64_t ffn, bool attends = true) {
    const std::int64_t down = m * ffn / layout.tp;
    return {.rows = std::max<std::int64_t>(1, m / layout.tp),
            .columns = network.hidden,
            .norms = norms,
            .rotated = attends ? m * attended_columns(network, layout) / layout.tp : 0,
            .up = network.gated ? 2 * down : down,
            .down = down};
}

std::vector<std::int64_t> windows_of(const std::vector<std::int64_t>& lengths, std::int64_t window) {
    std::vector<std::int64_t> windows;
    for (const std::int64_t length : lengths) {
        windows.insert(windows.end(), static_cast<std::size_t>(length / window), window);
        if (length % window > 0) windows.push_back(length % window);
    }
    return windows;
}

// Sequences and what they read, as one.
std::vector<std::int64_t> joined(const PassShape& shape) {
    auto lengths = shape.lengths;
    for (std::size_t i = 0; i < shape.context.size(); ++i) lengths[i] += shape.context[i];
    return lengths;
}

std::vector<std::int64_t> lengths_of(const PassShape& shape) { return shape.lengths; }

// The sequences that have something to read.
PassShape reading(const PassShape& shape) {
    PassShape readers;
    for (std::size_t i = 0; i < shape.context.size(); ++i)
        if (shape.context[i] > 0) {
            readers.lengths.push_back(shape.lengths[i]);
            readers.context.push_back(shape.context[i]);
            if (i < shape.whole) ++readers.whole;
        }
    return readers;
}

void cross_attention(OperatorBuilder& layer, const Architecture& network, const Layout& layout,
                     const PassShape& shape) {
    const Widths w(network, layout);
    const std::int64_t m = padded(positions_of_group(shape, layout));
    const std::int64_t context = padded(context_of_group(shape, layout));
    layer.over(m);
    const std::int64_t rotated = m * w.queries + context * w.keys;
    layer.elementwise(
        "cross attention norm", costdb::ElementwiseKind::norm_activation, 10 * m * w.hidden / layout.tp + 4 * rotated,
        1.6, {.rows = std::max<std::int64_t>(1, m / layout.tp), .columns = w.hidden, .norms = 1, .rotated = rotated});
    layer.column_parallel("cross query", w.queries, w.hidden);
    if (const PassShape readers = reading(shape); context > 0) {
        layer.over(context);
        layer.gather_context(network.cross_attention_dim);
        layer.gemm("cross keys", 2 * w.keys, network.cross_attention_dim);
        layer.attention(network, {whole_of(readers).lengths, divided_of(readers).lengths, whole_of(readers).context,
                                  divided_of(readers).context});
        layer.over(m);
    }
    layer.row_parallel("cross output", w.hidden, w.queries);
}

// Of a stream with so many norms, over all tensor parallel GPUs. Two streams share what is said of the block.
std::int64_t modulation_columns(const Architecture& network, std::int64_t norms) {
    if (network.modulation > 0) return network.modulation / network.hidden / (network.mmdit && norms == 2 ? 2 : 1);
    return network.mmdit ? 3 * norms * network.hidden : 0;
}

// Of a diffusion transformer's block. Norms with shift and scale are one kernel, and so are gates with their residuals
// (NeMo's AdaLN); their backward sums three gradients over the positions, for which each of the two reads 4 bytes a
// value again. MMDiT and blocks with a modulation of their own make the vectors by a product over the samples; others
// share them between blocks.
void modulation(OperatorBuilder& layer, const Architecture& network, const Layout& layout, std::int64_t samples,
                std::int64_t m, std::int64_t norms) {
    if (network.kind != workloads::ModuleKind::diffusion_transformer) return;
    if (const std::int64_t columns = modulation_columns(network, norms); columns > 0) {
        layer.over(samples);
        layer.gemm("modulation", std::max<std::int64_t>(1, columns / layout.tp), network.hidden);
        layer.over(m);
    }
    if (!has_input_gradient(layer.pass_kind())) return;
    const std::int64_t read = 8 * norms * m * network.hidden / layout.tp;
    layer.elementwise("modulation gradients", costdb::ElementwiseKind::norm_activation, read, 1,
                      {.rows = std::max<std::int64_t>(1, m / layout.tp), .columns = network.hidden, .norms = norms});
}

// MMDiT's two streams are put one after the other for their attention, and taken apart again.
void join_streams(OperatorBuilder& layer, const Widths& w, const std::vector<std::int64_t>& streams) {
    if (streams.size() < 2) return;
    std::int64_t m = 0;
    for (const std::int64_t stream : streams) m += stream;
    layer.elementwise("join streams", costdb::ElementwiseKind::other, 4 * m * (w.queries + 2 * w.keys), 1, {});
}

// Queries, of a gated attention their gates, keys and values.
std::int64_t qkv_columns(const Architecture& network, const Widths& w) {
    return (network.attention.output_gate ? 2 : 1) * w.queries + 2 * w.keys;
}

void output_gate(OperatorBuilder& layer, const Architecture& network, const Widths& w, std::int64_t m) {
    if (!network.attention.output_gate) return;
    layer.elementwise("output gate", costdb::ElementwiseKind::other, 6 * m * w.queries, 5. / 3, {});
}

// A block over one stream of positions, or (MMDiT) over two that attend jointly. Of kind `experts` its
// feed-forward is a mixture of them.
void block(OperatorBuilder& layer, const Architecture& network, const Layout& layout, const PassShape& shape,
           const std::vector<std::int64_t>& streams, const Attended& attended, BlockKind kind = BlockKind::plain) {
    const Widths w(network, layout);
    const bool experts = kind == BlockKind::experts;
    const std::int64_t ffn = experts ? network.moe->shared_ffn : network.ffn;
    const bool compressed = has_compressed_attention(network);
    const auto samples = static_cast<std::int64_t>(shape.lengths.size());
    for (const std::int64_t m : streams) {
        layer.over(m);
        layer.elementwise("norms and activations", costdb::ElementwiseKind::norm_activation,
                          norm_and_activation_traffic(network, layout, m, 2, ffn, layer.execution()),
                          memory_bound_backward(layer.execution()), norms_and_activation(network, layout, m, 2, ffn));
        modulation(layer, network, layout, samples, m, 2);
        if (compressed) {
            compressed_attention(layer, network, layout, m, attended);
            continue;
        }
        layer.column_parallel("qkv", qkv_columns(network, w), w.hidden);
    }
    if (!compressed) {
        join_streams(layer, w, streams);
        if (kind == BlockKind::windowed)
            layer.windowed_attention(network, attended);
        else
            layer.attention(network, attended);
        for (const std::int64_t m : streams) {
            layer.over(m);
            output_gate(layer, network, w, m);
            layer.row_parallel("attention output", w.hidden, w.queries);
        }
    }
    if (workloads::has_cross_beside_self(network)) cross_attention(layer, network, layout, shape);
    if (experts) return expert_feed_forward(layer, network, layout, streams.front());
    for (const std::int64_t m : streams) {
        layer.over(m);
        layer.column_parallel("up", w.up, w.hidden);
        layer.row_parallel("down", w.hidden, w.down);
        if (network.layer_embedding == 0) continue;
        layer.over(own_positions(m, layout));
        layer.gemm("layer embedding in", network.layer_embedding, w.hidden);
        layer.gemm("layer embedding out", w.hidden, network.layer_embedding);
    }
}

// The heads that are left on one of `parts` GPUs. Keys that are fewer are copied.
LinearAttention part_of(LinearAttention linear, std::int64_t parts) {
    linear.value_heads /= parts;
    linear.key_heads = std::max<std::int64_t>(1, linear.key_heads / parts);
    return linear;
}

// In front of the rule, bytes a position. Delta nets: the columns are transposed, convolved and transposed back, keys
// and queries normed and copied to the value heads.
std::int64_t convolution_traffic(const LinearAttention& linear) {
    if (linear.kind == LinearKind::mamba2) return 4 * linear.convolved();
    const std::int64_t both = 2 * linear.keys(), spread = 2 * linear.value_heads * linear.key_dim;
    return 8 * linear.convolved() + 4 * both + (spread > both ? 2 * (both + spread) : 0);
}

// Adds the linear attention of a block over m positions of packed sequences: projections, convolution, rule, gated
// norm, and what context parallel GPUs exchange around it. Pre: network.linear.
void linear_attention(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout,
                      std::int64_t m, const std::vector<std::int64_t>& lengths) {
    const auto& whole = *network.linear;
    constexpr double backward_ratio = 1.6;
    const auto own = part_of(whole, layout.tp), at_work = part_of(whole, layout.gpus_of_rank());
    const std::int64_t positions = m * layout.cp;  // that the heads at work see
    layer.over(m);
    layer.column_parallel("linear in", whole.columns() / layout.tp, network.hidden);
    layer.exchange_heads(at_work.columns() * layout.cp, own.values());
    layer.elementwise("convolution", ElementwiseKind::other, positions * convolution_traffic(at_work), backward_ratio,
                      {});
    if (layer.pass_kind() != PassKind::weight_gradient)
        layer.add("linear attention",
                  LinearRule{at_work, lengths,
                             layer.pass_kind() == PassKind::forward ? costdb::Pass::forward : costdb::Pass::backward});
    layer.elementwise("gated norm", ElementwiseKind::other, 6 * positions * at_work.values(), backward_ratio, {});
    layer.exchange_back(at_work.columns() * layout.cp, own.values());
    layer.row_parallel("linear out", network.hidden, own.values());
}

// A block with linear attention, or of one part alone.
void hybrid_block(OperatorBuilder& layer, const Architecture& network, const Layout& layout, const PassShape& shape,
                  const workloads::BlockParts& parts) {
    const Widths w(network, layout);
    const std::int64_t m = padded(positions_of_group(shape, layout));
    const std::int64_t ffn = parts.experts ? network.moe->shared_ffn : parts.dense ? network.ffn : 0;
    layer.over(m);
    layer.elementwise(
        "norms and activations", costdb::ElementwiseKind::norm_activation,
        norm_and_activation_traffic(network, layout, m, parts.norms(), ffn, layer.execution(), parts.attention),
        memory_bound_backward(layer.execution()),
        norms_and_activation(network, layout, m, parts.norms(), ffn, parts.attention));
    if (parts.linear) linear_attention(layer, network, layout, m, shape.lengths);
    if (parts.attention && has_compressed_attention(network)) {
        compressed_attention(layer, network, layout, m, attends_to(shape, lengths_of));
    } else if (parts.attention) {
        layer.column_parallel("qkv", qkv_columns(network, w), w.hidden);
        layer.attention(network, attends_to(shape, lengths_of));
        output_gate(layer, network, w, m);
        layer.row_parallel("attention output", w.hidden, w.queries);
    }
    if (parts.experts) expert_feed_forward(layer, network, layout, m);
    if (!parts.dense) return;
    layer.over(m);
    layer.column_parallel("up", w.up, w.hidden);
    layer.row_parallel("down", w.hidden, w.down);
}

// A block that attends to another module's positions instead of its own.
void cross_block(OperatorBuilder& layer, const Architecture& network, const Layout& layout, const PassShape& shape) {
    const Widths w(network, layout);
    const std::int64_t m = padded(positions_of_group(shape, layout));
    cross_attention(layer, network, layout, shape);
    layer.over(m);
    layer.elementwise("norm and activation", costdb::ElementwiseKind::norm_activation,
                      10 * m * w.hidden / layout.tp + 2 * m * (w.up + w.down), 1.6,
                      {.rows = std::max<std::int64_t>(1, m / layout.tp),
                       .columns = w.hidden,
                       .norms = 1,
                       .up = m * w.up,
                       .down = m * w.down});
    layer.column_parallel("up", w.up, w.hidden);
    layer.row_parallel("down", w.hidden, w.down);
}

void single_stream_block(OperatorBuilder& layer, const Architecture& network, const Layout& layout,
                         const PassShape& shape) {
    const Widths w(network, layout);
    const std::int64_t m = padded(block_positions_of_group(network, shape, layout));
    layer.over(m);
    layer.elementwise("norm and activations", costdb::ElementwiseKind::norm_activation,
                      norm_and_activation_traffic(network, layout, m, 1, network.ffn, layer.execution()),
                      memory_bound_backward(layer.execution()),
                      norms_and_activation(network, layout, m, 1, network.ffn));
    modulation(layer, network, layout, static_cast<std::int64_t>(shape.lengths.size()), m, 1);
    layer.column_parallel("qkv and up", w.queries + 2 * w.keys + w.up, w.hidden);
    layer.attention(network, attends_to(shape, joined));
    layer.row_parallel("output and down", w.hidden, w.queries + w.down);
}

}  // namespace

std::vector<Operator> layer_operators(const Architecture& network, const PassShape& shape, const Layout& layout,
                                      PassKind pass, std::int64_t layer, const Execution& execution) {
    const std::int64_t m = padded(positions_of_group(shape, layout));
    OperatorBuilder operators(m, layout, pass, execution);
    if (network.kind == workloads::ModuleKind::head) {
        head_block(operators, network, layout, m);
        return operators.operators;
    }
    operators.leave_out(workloads::sparsity_of(network, layer));
    switch (workloads::block_kind(network, layer)) {
        case BlockKind::windowed:
            block(operators, network, layout, shape, {m},
                  attends_to(shape,
                             [&](const PassShape& part) { return windows_of(part.lengths, network.attention.window); }),
                  BlockKind::windowed);
            break;
        case BlockKind::double_stream:
            if (const std::int64_t context = shape.context_positions(); context > 0)
                block(operators, network, layout, shape, {m, padded(context_of_group(shape, layout))},
                      attends_to(shape, joined));
            else
                block(operators, network, layout, shape, {m}, attends_to(shape, lengths_of));
            break;
        case BlockKind::single_stream:
            single_stream_block(operators, network, layout, shape);
            break;
        case BlockKind::cross:
            cross_block(operators, network, layout, shape);
            break;
        case BlockKind::experts:
            block(operators, network, layout, shape, {m}, attends_to(shape, lengths_of), BlockKind::experts);
            break;
        case BlockKind::linear:
        case BlockKind::parallel:
        case BlockKind::parallel_experts:
        case BlockKind::linear_experts:
        case BlockKind::linear_alone:
        case BlockKind::attention_alone:
        case BlockKind::dense_alone:
        case BlockKind::experts_alone:
            hybrid_block(operators, network, layout, shape, workloads::block_parts(network, layer));
            break;
        default:
            block(operators, network, layout, shape, {m}, attends_to(shape, lengths_of));
    }
    operators.casts();
    return operators.operators;
}

double layer_flops(const Architecture& network, std::int64_t layer, const PassShape& shape) {
    workloads::Context context{static_cast<double>(shape.context_positions()), 0};
    for (std::size_t i = 0; i < shape.context.size(); ++i)
        context.pairs += static_cast<double>(shape.lengths[i]) * static_cast<double>(shape.context[i]);
    const auto attended = network.mmdit ? joined(shape) : shape.lengths;
    const bool is_of_samples = network.kind == workloads::ModuleKind::diffusion_transformer;
    const double of_samples = is_of_samples ? 2 * static_cast<double>(shape.lengths.size()) *
                                                  static_cast<double>(modulation_parameters(network, layer))
                                            : 0;
    return of_samples + workloads::layer_flops(network, layer, static_cast<double>(block_positions(network, shape)),
                                               workloads::attention_pairs(network, layer, attended), context);
}

}  // namespace pipeweaver::emulator
