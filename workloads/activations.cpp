#include "pipeweaver/workloads/activations.hpp"

#include "pipeweaver/workloads/counts.hpp"

namespace pipeweaver::workloads {

Bytes layer_activations(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return layer_activations(network, 0, positions, 0, tp);
}

namespace {

// Bytes a position takes: divided by the tensor parallel GPUs, and whole on each of them.
struct Widths {
    std::int64_t split = 0, whole = 0;
};

std::int64_t head_size(const Attention& latent) { return latent.qk_nope_head_dim + latent.qk_rope_head_dim; }

std::int64_t linear_width(const LinearAttention& linear) {
    if (linear.kind == LinearKind::mamba2) return 2 * linear.columns() + 4 * linear.values();
    return 4 * linear.convolved() + 4 * linear.value_heads * linear.key_dim + 6 * linear.values() +
           2 * (linear.chunk + 6) * linear.value_heads;
}

Widths full_attention_widths(const Architecture& a) {
    const std::int64_t queries = a.heads * a.head_dim, keys = a.kv_heads * a.head_dim;
    const Attention& t = a.attention;
    if (t.kind == AttentionKind::latent) {
        const std::int64_t ranks = 2 * t.q_lora_rank.value_or(0) + 2 * t.kv_lora_rank + t.qk_rope_head_dim;
        return {2 * ranks + 2 * a.heads * (2 * head_size(t) + t.qk_nope_head_dim + 2 * t.v_head_dim)};
    }
    if (t.kind == AttentionKind::factored) return {4 * t.share_q_dim + 4 * queries, 4 * keys};
    return {2 * (queries + 2 * keys) + (t.output_gate ? 6 : 2) * queries + (t.qk_norm ? 2 * (queries + keys) : 0)};
}

Widths attention_widths(const Architecture& a, const BlockParts& parts) {
    Widths widths = parts.attention ? full_attention_widths(a) : Widths{};
    if (parts.linear) widths.split += linear_width(*a.linear);
    return widths;
}

// Of a column between the products of a feed-forward.
std::int64_t column_width(const Architecture& a) { return a.gated ? 6 : 4; }

std::int64_t routed_width(const Architecture& a) {
    return 2 * a.moe->top_k * (expert_width(a) + column_width(a) / 2 * a.moe->expert_ffn);
}

std::int64_t feed_forward_width(const Architecture& a, std::int64_t layer) {
    const std::int64_t of_column = column_width(a);
    const BlockParts parts = block_parts(a, layer);
    if (!parts.experts) return parts.dense ? of_column * a.ffn : 0;
    const auto& moe = *a.moe;
    return of_column * moe.shared_ffn + routed_width(a) + 8 * moe.experts + 4 * moe.latent;
}

// Norms whose outputs are scaled and shifted by what the sample is conditioned on.
std::int64_t modulated_norms(const Architecture& a, std::int64_t layer) {
    if (a.kind == ModuleKind::head) return 1;
    if (a.kind != ModuleKind::diffusion_transformer) return 0;
    return block_kind(a, layer) == BlockKind::single_stream ? 1 : 2;
}

}  // namespace

Bytes layer_activations(const Architecture& network, std::int64_t layer, std::int64_t positions, std::int64_t context,
                        std::int64_t tp) {
    const std::int64_t modulated = 2 * modulated_norms(network, layer) * network.hidden;
    if (network.kind == ModuleKind::head) return {positions * (14 * network.hidden + modulated + 4 * network.ffn) / tp};
    const std::int64_t queries = network.heads * network.head_dim, keys = network.kv_heads * network.head_dim;
    const BlockParts parts = block_parts(network, layer);
    auto [widths, whole] = attention_widths(network, parts);
    widths += 4 * parts.norms() * network.hidden + modulated + feed_forward_width(network, layer);
    if (network.layer_embedding > 0) widths += 6 * network.layer_embedding + 4 * network.hidden;
    if (network.kind == ModuleKind::diffusion_transformer) widths += 4 * network.hidden;
    if (block_kind(network, layer) == BlockKind::single_stream) widths -= 6 * network.hidden;
    const bool qk_norm = network.attention.qk_norm;
    const std::int64_t keys_and_values = (qk_norm ? 6 : 4) * keys;  // of a context's position
    std::int64_t of_context = 0;
    if (has_cross_beside_self(network)) {
        widths += 4 * network.hidden + (qk_norm ? 6 : 4) * queries;
        of_context = keys_and_values;
    }
    if (block_kind(network, layer) == BlockKind::cross) {
        widths -= keys_and_values;
        of_context = keys_and_values;
    }
    return {(positions * widths + context * of_context) / tp + positions * whole};
}

Bytes adapter_activations(const Architecture& network, std::int64_t layer, const Adapters& adapters,
                          std::int64_t positions, std::int64_t tp) {
    const std::int64_t of_matrix = 2 * positions * adapters.rank;
    const Bytes sum{of_matrix * adapted_matrices(network, layer, adapters)};
    if (expert_adapter_parameters(network, layer, adapters) == 0) return sum;
    const std::int64_t up = network.gated && adapters.apart ? 2 : 1;
    const std::int64_t matrices = (adapters.up ? up : 0) + (adapters.down ? 1 : 0);
    return sum + Bytes{of_matrix * matrices * network.moe->top_k / tp};
}

Bytes attention_outputs(const Architecture& network, std::int64_t layer, std::int64_t positions, std::int64_t tp) {
    const BlockParts parts = block_parts(network, layer);
    const std::int64_t linear = parts.linear ? 2 * positions * network.linear->values() / tp : 0;
    if (!parts.attention) return {linear};
    const std::int64_t attentions = has_cross_beside_self(network) ? 2 : 1;
    const bool latent = network.attention.kind == AttentionKind::latent;
    const std::int64_t columns = network.heads * (latent ? network.attention.v_head_dim : network.head_dim);
    return {linear + attentions * 2 * positions * columns / tp};
}

namespace {

// Of linear layers, bytes a position: inputs and gradients of outputs, divided by the tensor parallel GPUs, and
// gradients that are kept gathered.
struct Needs {
    std::int64_t inputs = 0, gradients = 0, gathered = 0;
};

Needs full_attention_needs(const Architecture& a) {
    const std::int64_t queries = a.heads * a.head_dim, keys = a.kv_heads * a.head_dim, hidden = 2 * a.hidden;
    const Attention& t = a.attention;
    if (t.kind == AttentionKind::latent) {
        const std::int64_t rank = t.q_lora_rank.value_or(0);
        return {hidden + 2 * (rank + t.kv_lora_rank) + 2 * a.heads * t.v_head_dim,
                2 * (rank + t.kv_lora_rank + t.qk_rope_head_dim) +
                    2 * a.heads * (head_size(t) + t.qk_nope_head_dim + t.v_head_dim),
                hidden};
    }
    if (t.kind == AttentionKind::factored)
        return {hidden + 2 * t.share_q_dim + 2 * queries, 2 * t.share_q_dim + 4 * keys + 2 * queries, hidden};
    return {hidden + 2 * queries, 2 * ((t.output_gate ? 2 : 1) * queries + 2 * keys), hidden};
}

// Side by side they read one input.
Needs attention_needs(const Architecture& a, const BlockParts& parts) {
    Needs needs = parts.attention ? full_attention_needs(a) : Needs{};
    if (!parts.linear) return needs;
    needs.inputs += (parts.attention ? 0 : 2 * a.hidden) + 2 * a.linear->values();
    needs.gradients += 2 * a.linear->columns();
    needs.gathered = 2 * a.hidden;
    return needs;
}

Needs feed_forward_needs(const Architecture& a, std::int64_t layer) {
    const std::int64_t hidden = 2 * a.hidden, up = a.gated ? 4 : 2;
    const BlockParts parts = block_parts(a, layer);
    if (!parts.dense && !parts.experts) return {};
    if (!parts.experts) return {hidden + 2 * a.ffn, up * a.ffn, hidden};
    const auto& moe = *a.moe;
    const std::int64_t width = 2 * expert_width(a), latent = 2 * moe.latent;
    return {hidden + latent + 2 * moe.shared_ffn + moe.top_k * (width + 2 * moe.expert_ffn),
            (latent > 0 ? latent + hidden : 0) + up * moe.shared_ffn + moe.top_k * (width + up * moe.expert_ffn) +
                4 * moe.experts,
            moe.shared_ffn > 0 ? hidden : 0};
}

}  // namespace

WeightGradientNeeds weight_gradient_needs(const Architecture& network, std::int64_t layer, std::int64_t positions,
                                          std::int64_t context, std::int64_t tp) {
    if (network.kind == ModuleKind::head) {
        const std::int64_t h = network.hidden, columns = 2 * network.ffn;
        return {{positions * (4 * h + columns) / tp}, {positions * (6 * h + columns) / tp + positions * 2 * h}};
    }
    const std::int64_t queries = network.heads * network.head_dim, keys = network.kv_heads * network.head_dim;
    const Needs attention = attention_needs(network, block_parts(network, layer)),
                feed_forward = feed_forward_needs(network, layer);
    std::int64_t inputs = attention.inputs + feed_forward.inputs;
    std::int64_t gradients = attention.gradients + feed_forward.gradients;
    std::int64_t gathered = attention.gathered + feed_forward.gathered, of_context = 0;
    if (block_kind(network, layer) == BlockKind::single_stream) {
        inputs -= 2 * network.hidden;
        gathered -= 2 * network.hidden;
    }
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

Bytes recomputable_activations(const Architecture& network, std::int64_t layer, std::int64_t positions,
                               std::int64_t tp) {
    const bool one_norm = network.kind == ModuleKind::head || block_kind(network, layer) == BlockKind::single_stream;
    const BlockParts parts = block_parts(network, layer);
    const std::int64_t norms =
        (one_norm ? 1 : parts.norms()) + (has_cross_beside_self(network) ? 1 : 0) + modulated_norms(network, layer);
    const std::int64_t activated = parts.experts
                                       ? network.moe->shared_ffn + network.moe->top_k * network.moe->expert_ffn
                                   : parts.dense ? network.ffn
                                                 : 0;
    return {positions * (2 * norms * network.hidden + 2 * activated) / tp};
}

bool has_second_products(const Architecture& network, std::int64_t layer) {
    const BlockKind kind = block_kind(network, layer);
    const bool of_itself = kind != BlockKind::cross && !has_cross_beside_self(network);
    const bool transformer = network.kind != ModuleKind::diffusion_transformer && network.kind != ModuleKind::head;
    const AttentionKind attention = network.attention.kind;
    const bool whole = attention != AttentionKind::latent && attention != AttentionKind::factored;
    const BlockParts parts = block_parts(network, layer);
    return transformer && of_itself && whole && parts.attention && !parts.linear;
}

Bytes second_product_activations(const Architecture& network, std::int64_t layer, std::int64_t positions,
                                 std::int64_t tp) {
    if (!has_second_products(network, layer)) return {};
    const std::int64_t queries = network.heads * network.head_dim, keys = network.kv_heads * network.head_dim;
    const BlockParts parts = block_parts(network, layer);
    std::int64_t columns = keys + (network.attention.qk_norm ? queries + keys : 0);
    if (tp == 1 && (parts.dense || parts.experts)) columns += network.hidden;
    if (parts.dense && !parts.experts && network.gated) columns += network.ffn;
    return {2 * positions * columns / tp};
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

Bytes layer_backward_workspace(const Architecture& network, std::int64_t layer, std::int64_t positions,
                               std::int64_t tp) {
    const BlockParts parts = block_parts(network, layer);
    const bool experts = parts.experts;
    if (!experts && !parts.dense) return {parts.linear ? 2 * positions * network.linear->columns() / tp : 0};
    return {4 * positions * (experts ? network.moe->top_k * network.moe->expert_ffn : network.ffn) / tp};
}

Bytes prediction_activations(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return {network.predicted_layers * 12 * positions * network.hidden / tp};
}

Bytes head_activations(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return {2 * positions * network.vocab / tp};
}

Bytes head_backward_workspace(const Architecture& network, std::int64_t positions) {
    return {6 * positions * network.hidden};
}

}  // namespace pipeweaver::workloads
