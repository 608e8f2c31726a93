#include "pipeweaver/workloads/activations.hpp"

#include "pipeweaver/workloads/counts.hpp"

namespace pipeweaver::workloads {

Bytes layer_activations(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return layer_activations(network, 0, positions, 0, tp);
}

Bytes layer_activations(const Architecture& network, std::int64_t layer, std::int64_t positions, std::int64_t context,
                        std::int64_t tp) {
    if (network.kind == ModuleKind::head) return {positions * (14 * network.hidden + 4 * network.ffn) / tp};
    const std::int64_t queries = network.heads * network.head_dim, keys = network.kv_heads * network.head_dim;
    std::int64_t widths = 8 * network.hidden + 2 * (queries + 2 * keys) + 2 * queries;
    widths += (network.gated ? 6 : 4) * network.ffn;
    if (network.kind == ModuleKind::diffusion_transformer) widths += 4 * network.hidden;
    if (block_kind(network, layer) == BlockKind::single_stream) widths -= 6 * network.hidden;
    std::int64_t of_context = 0;
    if (has_cross_beside_self(network)) {
        widths += 4 * network.hidden + 4 * queries;
        of_context = 4 * keys;
    }
    if (block_kind(network, layer) == BlockKind::cross) {
        widths -= 4 * keys;
        of_context = 4 * keys;
    }
    return {(positions * widths + context * of_context) / tp};
}

Bytes attention_outputs(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    const std::int64_t attentions = has_cross_beside_self(network) ? 2 : 1;
    const bool latent = network.attention.kind == AttentionKind::latent;
    const std::int64_t columns = network.heads * (latent ? network.attention.v_head_dim : network.head_dim);
    return {attentions * 2 * positions * columns / tp};
}

WeightGradientNeeds weight_gradient_needs(const Architecture& network, std::int64_t layer, std::int64_t positions,
                                          std::int64_t context, std::int64_t tp) {
    if (network.kind == ModuleKind::head) {
        const std::int64_t h = network.hidden, columns = 2 * network.ffn;
        return {{positions * (4 * h + columns) / tp}, {positions * (6 * h + columns) / tp + positions * 2 * h}};
    }
    const std::int64_t queries = network.heads * network.head_dim, keys = network.kv_heads * network.head_dim;
    const bool single = block_kind(network, layer) == BlockKind::single_stream;
    const std::int64_t hidden = (single ? 2 : 4) * network.hidden;
    std::int64_t inputs = hidden + 2 * queries + 2 * network.ffn;
    std::int64_t gradients = 2 * (queries + 2 * keys) + (network.gated ? 4 : 2) * network.ffn;
    std::int64_t gathered = hidden, of_context = 0;
    if (has_cross_beside_self(network)) {
        inputs += 2 * network.hidden + 2 * queries;
        gradients += 2 * queries;
        gathered += 2 * network.hidden;
        of_context = 4 * keys;
    }
    if (block_kind(network, layer) == BlockKind::cross) {
        gradients -= 4 * keys;
        of_context = 4 * keys;
    }
    return {{positions * inputs / tp}, {(positions * gradients + context * of_context) / tp + positions * gathered}};
}

Bytes context_input(const Architecture& network, std::int64_t context, std::int64_t tp) {
    return {2 * context * network.cross_attention_dim / tp};
}

Bytes head_input(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    if (network.kind != ModuleKind::head) return {};
    return {2 * positions * (network.condition_dim + network.in_channels) / tp};
}

Bytes layer_input(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return {2 * positions * network.hidden / tp};
}

Bytes layer_backward_workspace(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return {4 * positions * network.ffn / tp};
}

Bytes head_activations(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return {2 * positions * network.vocab / tp};
}

Bytes head_backward_workspace(const Architecture& network, std::int64_t positions) {
    return {6 * positions * network.hidden};
}

}  // namespace pipeweaver::workloads
