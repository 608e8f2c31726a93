#include "emulator/published/expert_layers.hpp"

#include "emulator/operator_builder.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <utility>

namespace pipeweaver::emulator {

using workloads::Architecture;

namespace {

// Widths of the chosen experts and the shared ones together; dense: of the feed-forward.
std::int64_t active_width(const Architecture& network, std::int64_t layer) {
    if (!workloads::is_moe_layer(network, layer)) return network.ffn;
    return network.moe->shared_ffn + network.moe->top_k * network.moe->expert_ffn;
}

std::int64_t norm_and_activation_bytes(const Architecture& network, std::int64_t m, std::int64_t layer) {
    const auto& latent = network.attention;
    const std::int64_t head = latent.qk_nope_head_dim + latent.qk_rope_head_dim;
    return m * (20 * network.hidden + 8 * network.heads * head + 6 * active_width(network, layer));
}

void latent_attention(OperatorBuilder& block, const Architecture& network, const PassShape& shape) {
    const auto& latent = network.attention;
    const std::int64_t head = latent.qk_nope_head_dim + latent.qk_rope_head_dim;
    const std::int64_t rank = latent.q_lora_rank.value_or(network.hidden);
    if (latent.q_lora_rank) block.gemm("query down", rank, network.hidden);
    block.gemm("query up", network.heads * head, rank);
    block.gemm("keys down", latent.kv_lora_rank + latent.qk_rope_head_dim, network.hidden);
    block.gemm("keys and values up", network.heads * (latent.qk_nope_head_dim + latent.v_head_dim),
               latent.kv_lora_rank);
    Architecture scores = network;  // all heads have keys of their own once they are unpacked
    scores.kv_heads = network.heads;
    scores.head_dim = head;
    block.attention(scores, shape.lengths);
    block.gemm("attention output", network.hidden, network.heads * latent.v_head_dim);
}

}  // namespace

std::vector<Operator> latent_layer_operators(const Architecture& network, const PassShape& shape, PassKind pass,
                                             std::int64_t layer) {
    const std::int64_t m = shape.positions();
    const Layout alone{};
    OperatorBuilder block(m, alone, pass);
    const std::int64_t down = m * active_width(network, layer);
    block.elementwise("norms and activations", costdb::ElementwiseKind::norm_activation,
                      norm_and_activation_bytes(network, m, layer), 1.6,
                      {.rows = m,
                       .columns = network.hidden,
                       .norms = 2,
                       .rotated = 2 * m * network.heads * network.attention.qk_rope_head_dim,
                       .up = (network.gated ? 2 : 1) * down,
                       .down = down});
    latent_attention(block, network, shape);
    const bool experts = workloads::is_moe_layer(network, layer);
    if (experts) block.gemm("router", network.moe->experts, network.hidden);
    const std::int64_t width = experts ? network.moe->shared_ffn : network.ffn;
    if (width > 0) {
        block.gemm("up", (network.gated ? 2 : 1) * width, network.hidden);
        block.gemm("down", network.hidden, width);
    }
    return std::move(block.operators);
}

double grouped_gemm_flops(const Architecture& network, std::int64_t positions) {
    const double matrices = network.gated ? 3 : 2;
    return 2 * matrices * static_cast<double>(positions * network.moe->top_k) *
           static_cast<double>(network.hidden * network.moe->expert_ffn);
}

double dispatched_bytes(const Architecture& network, std::int64_t positions) {
    return 2 * static_cast<double>(positions * network.moe->top_k) * static_cast<double>(network.hidden);
}

Bytes latent_layer_activations(const Architecture& network, std::int64_t positions, std::int64_t layer) {
    const auto& latent = network.attention;
    const std::int64_t ranks = 2 * latent.q_lora_rank.value_or(0) + 2 * latent.kv_lora_rank + latent.qk_rope_head_dim;
    const std::int64_t head = latent.qk_nope_head_dim + latent.qk_rope_head_dim;
    const std::int64_t heads = network.heads * (2 * head + latent.qk_nope_head_dim + 2 * latent.v_head_dim);
    std::int64_t widths = 8 * network.hidden + 2 * ranks + 2 * heads;
    if (workloads::is_moe_layer(network, layer)) {
        const auto& moe = *network.moe;
        widths += 6 * moe.shared_ffn + 2 * moe.top_k * (network.hidden + 3 * moe.expert_ffn) + 8 * moe.experts;
    } else {
        widths += 6 * network.ffn;
    }
    return Bytes{positions * widths};
}

LayerParameters layer_parameters_of(const Architecture& network, std::int64_t layer) {
    const std::int64_t all = workloads::layer_parameters(network, layer);
    if (!workloads::is_moe_layer(network, layer)) return {all, 0};
    const std::int64_t experts =
        network.moe->experts * (network.gated ? 3 : 2) * network.hidden * network.moe->expert_ffn;
    return {all - experts, experts};
}

}  // namespace pipeweaver::emulator
