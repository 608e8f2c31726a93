#include "validation/expert_layers.hpp"

#include "emulator/operators/latent_attention.hpp"
#include "emulator/operators/operator_builder.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <utility>

namespace pipeweaver::validation {

using namespace emulator;

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
    compressed_attention(block, network, alone, m, shape.lengths);
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

}  // namespace pipeweaver::validation
