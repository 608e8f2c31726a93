#include "pipeweaver/workloads/counts.hpp"

#include "pipeweaver/base/assert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace pipeweaver::workloads {

namespace {

// Hybrids of linear attention have none, gated or not.
bool has_matrix_biases(const Architecture& a) { return !a.gated && !a.linear; }

// A norm without centring has a scale, else a scale and a shift.
std::int64_t norm_size(const Architecture& a) { return has_matrix_biases(a) ? 2 * a.hidden : a.hidden; }

bool is_single_stream(const Architecture& a, std::int64_t layer) {
    return a.mmdit && layer >= a.layers - a.single_layers;
}

std::int64_t self_attention(const Architecture& a) {
    const Attention& t = a.attention;
    const std::int64_t query = a.heads * a.head_dim, key = a.kv_heads * a.head_dim;
    if (t.kind == AttentionKind::latent) {
        const std::int64_t size = a.heads * (t.qk_nope_head_dim + t.qk_rope_head_dim);
        const std::int64_t queries = t.q_lora_rank ? *t.q_lora_rank * (a.hidden + size) : a.hidden * size;
        return queries + a.hidden * (t.kv_lora_rank + t.qk_rope_head_dim) +
               t.kv_lora_rank * a.heads * (t.qk_nope_head_dim + t.v_head_dim) + a.heads * t.v_head_dim * a.hidden;
    }
    if (t.kind == AttentionKind::factored)
        return t.share_q_dim * (a.hidden + query) + 2 * a.hidden * key + query * a.hidden;
    return (t.output_gate ? 3 : 2) * a.hidden * query + 2 * a.hidden * key;
}

// Input and output of a linear attention.
std::int64_t linear_matrices(const LinearAttention& linear, std::int64_t hidden) {
    return hidden * (linear.columns() + linear.values());
}

// What else it has: the convolution, of Mamba-2 with biases, what heads decay by, and the norm in front of its gate.
std::int64_t linear_vectors(const LinearAttention& linear) {
    const bool mamba = linear.kind == LinearKind::mamba2;
    const std::int64_t convolution = (linear.convolution + (mamba ? 1 : 0)) * linear.convolved();
    return convolution + (mamba ? 3 : 2) * linear.value_heads + (mamba ? linear.values() : linear.value_dim);
}

// Of the self attention, what tensor parallelism copies.
std::int64_t copied_attention(const Architecture& a) {
    const Attention& t = a.attention;
    if (t.kind == AttentionKind::latent)
        return a.hidden * (t.q_lora_rank.value_or(0) + t.kv_lora_rank + t.qk_rope_head_dim);
    if (t.kind == AttentionKind::factored) return a.hidden * (t.share_q_dim + 2 * a.kv_heads * a.head_dim);
    return 0;
}

// Query and output of a cross attention, and its keys and values, which are made of the source.
std::int64_t cross_query(const Architecture& a) { return 2 * a.hidden * a.heads * a.head_dim; }
std::int64_t cross_keys(const Architecture& a) { return 2 * a.cross_attention_dim * a.kv_heads * a.head_dim; }

std::int64_t feed_forward(const Architecture& a, std::int64_t width) { return (a.gated ? 3 : 2) * a.hidden * width; }

std::int64_t one_expert(const Architecture& a) { return (a.gated ? 3 : 2) * expert_width(a) * a.moe->expert_ffn; }

// Router, and projections into and out of the width of experts.
std::int64_t in_front_of_experts(const Architecture& a) { return a.hidden * (a.moe->experts + 2 * a.moe->latent); }

std::int64_t experts(const Architecture& a, std::int64_t count) {
    return in_front_of_experts(a) + count * one_expert(a) + feed_forward(a, a.moe->shared_ffn);
}

std::int64_t attention_biases(const Architecture& a, std::int64_t layer) {
    const std::int64_t qkv = (a.heads + 2 * a.kv_heads) * a.head_dim;
    if (!has_matrix_biases(a)) return a.qkv_bias && block_parts(a, layer).attention ? qkv : 0;
    const std::int64_t one = a.kind == ModuleKind::head ? 0 : qkv + a.hidden;
    const std::int64_t streams = a.mmdit && !is_single_stream(a, layer) ? 2 : 1;
    return one * (streams + (has_cross_beside_self(a) ? 1 : 0));
}

std::int64_t feed_forward_biases(const Architecture& a, std::int64_t layer) {
    if (!has_matrix_biases(a)) return 0;
    const std::int64_t streams = a.mmdit && !is_single_stream(a, layer) ? 2 : 1;
    return streams * (a.ffn + a.hidden) + modulation_parameters(a, layer) / a.hidden;
}

std::int64_t layer_norms(const Architecture& a, std::int64_t layer) {
    const BlockParts parts = block_parts(a, layer);
    std::int64_t size = 0;
    // A diffusion transformer's norms have no parameters of their own: the modulation takes their place.
    if (a.kind != ModuleKind::diffusion_transformer) size += parts.norms() * norm_size(a);
    if (parts.linear) size += linear_vectors(*a.linear);
    if (!parts.attention) return size;
    if (a.attention.qk_norm) size += 2 * a.head_dim;
    if (a.attention.kind == AttentionKind::latent)
        size += a.attention.q_lora_rank.value_or(0) + a.attention.kv_lora_rank;
    if (a.attention.kind == AttentionKind::factored) size += a.attention.share_q_dim;
    return size;
}

// Matrices in front of the first and after the last block, but for embedding and output head.
std::int64_t outer_matrices(const Architecture& a) {
    if (a.kind == ModuleKind::vision_encoder) return 3 * a.patch_size * a.patch_size * a.temporal_patch * a.hidden;
    if (a.kind == ModuleKind::diffusion_transformer) return a.embedders;
    if (a.kind != ModuleKind::head) return 0;
    constexpr std::int64_t time_features = 256;
    const std::int64_t time = a.hidden * (time_features + a.hidden);
    return a.hidden * (a.in_channels + a.condition_dim) + time + 2 * a.hidden * a.hidden + a.hidden * a.in_channels;
}

std::int64_t position_embeddings(const Architecture& a) {
    if (a.kind != ModuleKind::vision_encoder || a.image_size == 0) return 0;
    const std::int64_t side = a.image_size / a.patch_size;
    return (side * side + 1) * a.hidden;
}

// Of the layer pattern.
char letter(const Architecture& a, std::int64_t layer) {
    if (a.layer_pattern.empty()) return 'F';
    return a.layer_pattern[static_cast<std::size_t>(layer) % a.layer_pattern.size()];
}

bool is_windowed_layer(const Architecture& a, std::int64_t layer) {
    const auto& full = a.attention.full_layers;
    return a.attention.kind == AttentionKind::windowed && a.attention.window > 0 &&
           std::find(full.begin(), full.end(), layer) == full.end();
}

}  // namespace

std::int64_t modulation_parameters(const Architecture& a, std::int64_t layer) {
    if (a.kind == ModuleKind::head) return 3 * a.hidden * a.hidden;
    if (a.modulation > 0) return a.modulation;
    if (!a.mmdit) return 0;
    return (is_single_stream(a, layer) ? 3 : 12) * a.hidden * a.hidden;
}

std::int64_t expert_width(const Architecture& a) { return a.moe->latent > 0 ? a.moe->latent : a.hidden; }

bool has_cross_beside_self(const Architecture& a) { return a.cross_attention_dim > 0 && a.cross_attention_layers == 0; }

bool is_moe_layer(const Architecture& a, std::int64_t layer) {
    const char part = letter(a, layer);
    if (a.moe && part != 'F' && part != 'L' && part != 'P') return part == 'E';
    if (!a.moe || layer < a.moe->first_layer) return false;
    const std::int64_t past = layer - a.moe->first_layer;
    return past % a.moe->every == 0 && past / a.moe->every < a.moe->moe_layers;
}

bool is_cross_layer(const Architecture& a, std::int64_t layer) {
    if (a.cross_attention_layers == 0) return false;
    const std::int64_t period = a.layers / a.cross_attention_layers;
    return (layer + 2) % period == 0 && (layer + 2) / period <= a.cross_attention_layers;
}

BlockParts block_parts(const Architecture& a, std::int64_t layer) {
    const char part = letter(a, layer);
    const bool experts = is_moe_layer(a, layer), beside = part == 'P', both = part == 'F' || part == 'L' || beside;
    return {part == 'F' || part == '*' || beside, part == 'L' || part == 'M' || beside,
            (both && !experts) || part == '-', experts};
}

double sparsity_of(const Architecture& a, std::int64_t layer) {
    const auto& all = a.attention.sparsity;
    if (all.empty()) return 0;
    return all.size() == 1 ? all.front() : all[static_cast<std::size_t>(layer)];
}

BlockKind block_kind(const Architecture& a, std::int64_t layer) {
    switch (letter(a, layer)) {
        case 'L':
            return is_moe_layer(a, layer) ? BlockKind::linear_experts : BlockKind::linear;
        case 'P':
            return is_moe_layer(a, layer) ? BlockKind::parallel_experts : BlockKind::parallel;
        case 'M':
            return BlockKind::linear_alone;
        case '*':
            return BlockKind::attention_alone;
        case '-':
            return BlockKind::dense_alone;
        case 'E':
            return BlockKind::experts_alone;
        default:
            break;
    }
    if (a.mmdit) return is_single_stream(a, layer) ? BlockKind::single_stream : BlockKind::double_stream;
    if (is_cross_layer(a, layer)) return BlockKind::cross;
    if (is_moe_layer(a, layer)) return BlockKind::experts;
    return is_windowed_layer(a, layer) ? BlockKind::windowed : BlockKind::plain;
}

std::int64_t layer_parameters(const Architecture& a, std::int64_t layer) {
    PIPEWEAVER_ASSERT(layer >= 0 && layer < a.layers);
    if (a.kind == ModuleKind::head) return feed_forward(a, a.ffn) + modulation_parameters(a, layer);
    if (a.mmdit) {
        const std::int64_t streams = is_single_stream(a, layer) ? 1 : 2;
        return streams * (self_attention(a) + feed_forward(a, a.ffn)) + modulation_parameters(a, layer);
    }
    const BlockParts parts = block_parts(a, layer);
    std::int64_t sum = 0;
    if (parts.attention) sum += is_cross_layer(a, layer) ? cross_query(a) + cross_keys(a) : self_attention(a);
    if (parts.linear) sum += linear_matrices(*a.linear, a.hidden);
    if (has_cross_beside_self(a)) sum += cross_query(a) + cross_keys(a);
    if (parts.experts) sum += experts(a, a.moe->experts);
    return sum + (parts.dense ? feed_forward(a, a.ffn) : 0) + modulation_parameters(a, layer) +
           2 * a.hidden * a.layer_embedding;
}

LayerParameterParts layer_parameter_parts(const Architecture& a, std::int64_t layer) {
    LayerParameterParts parts;
    if (block_parts(a, layer).attention && !is_cross_layer(a, layer)) parts.copied = copied_attention(a);
    parts.copied += 2 * a.hidden * a.layer_embedding;
    if (is_moe_layer(a, layer)) {
        parts.copied += in_front_of_experts(a);
        parts.experts = a.moe->experts * one_expert(a);
    }
    parts.split = layer_parameters(a, layer) - parts.copied - parts.experts;
    return parts;
}

namespace {

// A matrix of a block that may have adapters.
struct Adapted {
    std::int64_t in, out;
    bool by_columns;     // split by its columns, else by its rows
    bool whole = false;  // or by neither: tensor parallel GPUs have copies
};

// Matrices of the same rows, as one or each by itself.
void add_columns(const std::vector<std::int64_t>& columns, std::int64_t rows, bool apart, std::vector<Adapted>& all) {
    if (!apart) return all.push_back({rows, std::accumulate(columns.begin(), columns.end(), std::int64_t{0}), true});
    for (const std::int64_t one : columns) all.push_back({rows, one, true});
}

// Down to the ranks of queries, keys and values, of which GPUs have copies, and up to their heads; the output.
void add_latent(const Architecture& a, const Adapters& adapters, std::vector<Adapted>& all) {
    const Attention& t = a.attention;
    const std::int64_t queries = a.heads * (t.qk_nope_head_dim + t.qk_rope_head_dim);
    if (adapters.qkv) {
        if (t.q_lora_rank) all.push_back({a.hidden, *t.q_lora_rank, true, true});
        all.push_back({t.q_lora_rank.value_or(a.hidden), queries, true});
        all.push_back({a.hidden, t.kv_lora_rank + t.qk_rope_head_dim, true, true});
        all.push_back({t.kv_lora_rank, a.heads * (t.qk_nope_head_dim + t.v_head_dim), true});
    }
    if (adapters.output) all.push_back({a.heads * t.v_head_dim, a.hidden, false});
}

std::vector<Adapted> adapted(const Architecture& a, std::int64_t layer, const Adapters& adapters) {
    const BlockParts parts = block_parts(a, layer);
    const std::int64_t queries = a.heads * a.head_dim, keys = is_cross_layer(a, layer) ? 0 : a.kv_heads * a.head_dim;
    const std::int64_t gates = a.attention.output_gate ? queries : 0;
    const std::int64_t ffn = parts.experts ? a.moe->shared_ffn : parts.dense ? a.ffn : 0;
    std::vector<Adapted> all;
    if (parts.attention && a.attention.kind == AttentionKind::latent) {
        add_latent(a, adapters, all);
    } else if (parts.attention) {
        std::vector<std::int64_t> columns{queries + gates};
        if (keys > 0) columns.insert(columns.end(), 2, keys);
        if (adapters.qkv) add_columns(columns, a.hidden, adapters.apart, all);
        if (adapters.output) all.push_back({queries, a.hidden, false});
    }
    if (parts.linear) {
        const std::vector<std::int64_t> columns{a.linear->convolved(), a.linear->columns() - a.linear->convolved()};
        if (adapters.qkv) add_columns(columns, a.hidden, adapters.apart, all);
        if (adapters.output) all.push_back({a.linear->values(), a.hidden, false});
    }
    if (has_cross_beside_self(a)) {
        if (adapters.qkv) all.push_back({a.hidden, queries, true});
        if (adapters.output) all.push_back({queries, a.hidden, false});
    }
    const std::vector<std::int64_t> up(a.gated ? 2 : 1, ffn);
    if (ffn > 0 && adapters.up) add_columns(up, a.hidden, adapters.apart, all);
    if (ffn > 0 && adapters.down) all.push_back({ffn, a.hidden, false});
    return all;
}

}  // namespace

LayerParameterParts adapter_parameters(const Architecture& a, std::int64_t layer, const Adapters& adapters) {
    LayerParameterParts parts;
    for (const Adapted& matrix : adapted(a, layer, adapters)) {
        const std::int64_t split = matrix.whole ? 0 : matrix.by_columns ? matrix.out : matrix.in;
        parts.split += adapters.rank * split;
        parts.copied += adapters.rank * (matrix.in + matrix.out - split);
    }
    return parts;
}

std::int64_t expert_adapter_parameters(const Architecture& a, std::int64_t layer, const Adapters& adapters) {
    if (adapters.experts == ExpertAdapters::none || !is_moe_layer(a, layer)) return 0;
    const std::int64_t ffn = a.moe->expert_ffn, wide = (a.gated ? 2 : 1) * ffn;
    const std::int64_t width = expert_width(a), rows = (a.gated && adapters.apart ? 2 : 1) * width;
    return adapters.rank * ((adapters.up ? rows + wide : 0) + (adapters.down ? ffn + width : 0));
}

std::int64_t adapted_matrices(const Architecture& a, std::int64_t layer, const Adapters& adapters) {
    return static_cast<std::int64_t>(adapted(a, layer, adapters).size());
}

LayerParameterParts weight_shapes(const Architecture& a, bool dense, bool experts) {
    LayerParameterParts parts;
    parts.copied = copied_attention(a);
    parts.split = self_attention(a) - parts.copied;
    if (a.linear) parts.split += linear_matrices(*a.linear, a.hidden);
    if (dense) parts.split += feed_forward(a, a.ffn);
    if (!experts) return parts;
    parts.copied += 2 * a.hidden * a.moe->latent;
    parts.split += feed_forward(a, a.moe->shared_ffn);
    parts.experts = one_expert(a);
    return parts;
}

std::int64_t active_layer_parameters(const Architecture& a, std::int64_t layer) {
    const std::int64_t all = layer_parameters(a, layer);
    if (a.kind == ModuleKind::head) return all;
    if (a.mmdit) return (all - modulation_parameters(a, layer)) / (is_single_stream(a, layer) ? 1 : 2);
    std::int64_t active = all - modulation_parameters(a, layer);
    if (is_cross_layer(a, layer) || has_cross_beside_self(a)) active -= cross_keys(a);
    if (is_moe_layer(a, layer)) active -= (a.moe->experts - a.moe->top_k) * one_expert(a);
    return active;
}

std::int64_t token_embedding_parameters(const Architecture& a) { return a.vocab * a.hidden; }

std::int64_t embedding_parameters(const Architecture& a) {
    return token_embedding_parameters(a) + a.layers * a.layer_embedding * (a.vocab + a.hidden);
}

std::int64_t head_parameters(const Architecture& a) {
    return a.kind == ModuleKind::language_model && !a.tied_embeddings ? a.vocab * a.hidden : 0;
}

std::int64_t prediction_parameters(const Architecture& a) { return a.predicted_layers * 2 * a.hidden * a.hidden; }

std::int64_t matrix_parameters(const Architecture& a) {
    std::int64_t sum = embedding_parameters(a) + head_parameters(a) + prediction_parameters(a) + outer_matrices(a);
    for (std::int64_t layer = 0; layer < a.layers; ++layer) sum += layer_parameters(a, layer);
    return sum;
}

std::int64_t all_parameters(const Architecture& a) {
    std::int64_t sum = matrix_parameters(a) + position_embeddings(a);
    for (std::int64_t layer = 0; layer < a.layers; ++layer)
        sum += layer_norms(a, layer) + attention_biases(a, layer) + feed_forward_biases(a, layer);
    const bool has_final_norm = a.kind != ModuleKind::diffusion_transformer && a.kind != ModuleKind::head;
    return sum + (has_final_norm ? norm_size(a) : 0);
}

double attention_pairs(const Architecture& a, std::span<const std::int64_t> lengths) {
    double pairs = 0;
    for (const std::int64_t length : lengths) pairs += static_cast<double>(length) * static_cast<double>(length);
    return a.attention.causal ? pairs / 2 : pairs;
}

double attention_pairs(const Architecture& a, std::int64_t layer, std::span<const std::int64_t> lengths) {
    if (!is_windowed_layer(a, layer)) return attention_pairs(a, lengths);
    double pairs = 0;
    for (const std::int64_t length : lengths)
        pairs += static_cast<double>(length) * static_cast<double>(std::min(length, a.attention.window));
    return a.attention.causal ? pairs / 2 : pairs;
}

double linear_rule_flops(const LinearAttention& linear, double tokens) {
    const std::int64_t with_state = linear.kind == LinearKind::gated_delta ? 8 : 7;
    const std::int64_t rule = with_state * linear.values() * linear.key_dim;
    return tokens * static_cast<double>(rule + 2 * linear.convolution * linear.convolved());
}

double layer_flops(const Architecture& a, std::int64_t layer, double tokens, double pairs, const Context& context) {
    const BlockParts parts = block_parts(a, layer);
    double flops = 2 * tokens * static_cast<double>(active_layer_parameters(a, layer));
    const double heads = static_cast<double>(a.heads), head_dim = static_cast<double>(a.head_dim);
    const bool cross = is_cross_layer(a, layer);
    if (parts.linear) flops += linear_rule_flops(*a.linear, tokens);
    if (!parts.attention) return flops;
    if (a.attention.kind == AttentionKind::latent) {
        const Attention& t = a.attention;
        flops += 2 * heads * static_cast<double>(t.qk_nope_head_dim + t.qk_rope_head_dim + t.v_head_dim) * pairs;
    } else if (!cross) {
        flops += 4 * heads * head_dim * pairs * (1 - sparsity_of(a, layer));
    }
    if (cross || has_cross_beside_self(a))
        flops += 2 * context.tokens * static_cast<double>(cross_keys(a)) + 4 * heads * head_dim * context.pairs;
    return flops;
}

double head_flops(const Architecture& a, double tokens) {
    if (a.kind != ModuleKind::language_model) return 0;
    const std::int64_t head = (1 + a.predicted_layers) * a.vocab * a.hidden + prediction_parameters(a);
    const std::int64_t of_layers = a.layers * a.layer_embedding * a.hidden;
    return 2 * tokens * static_cast<double>(head + of_layers);
}

std::string parameters_by_module(const Model& model) {
    std::string text;
    for (const Module& module : model.modules)
        text += fmt::format("{}{} {:.2f} B{}", text.empty() ? "" : ", ", module.name,
                            static_cast<double>(all_parameters(module.architecture)) * 1e-9,
                            module.trains() ? "" : " frozen");
    text += " parameters";
    for (const Model& teacher : model.teacher) text += ", of the teacher " + parameters_by_module(teacher);
    return text;
}

std::int64_t projector_parameters(const ModelEdge& edge) {
    if (edge.projector_hidden == 0) return edge.projector_in * edge.projector_out;
    return edge.projector_hidden * (edge.projector_in + edge.projector_out);
}

}  // namespace pipeweaver::workloads
