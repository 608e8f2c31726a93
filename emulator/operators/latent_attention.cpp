#include "emulator/operators/latent_attention.hpp"

#include <string_view>

namespace pipeweaver::emulator {

using workloads::Architecture;
using workloads::AttentionKind;

namespace {

void latent_attention(OperatorBuilder& layer, const Architecture& network, const Layout& layout, std::int64_t m,
                      const Attended& attended) {
    const auto& latent = network.attention;
    const std::int64_t head = latent.qk_nope_head_dim + latent.qk_rope_head_dim, heads = network.heads / layout.tp;
    const std::int64_t rank = latent.q_lora_rank.value_or(network.hidden);
    const std::int64_t keys = latent.kv_lora_rank + latent.qk_rope_head_dim, own = own_positions(m, layout);
    const auto& adapters = layer.execution().adapters;
    const auto product = [&](std::string_view name, std::int64_t n, std::int64_t k) {
        layer.gemm(name, n, k);
        if (adapters && adapters->qkv) layer.adapter(n, k);
    };
    layer.over(m);
    layer.tensor_parallel(rank + keys, network.hidden);
    if (latent.q_lora_rank) {
        layer.over(own);
        product("query down", rank, network.hidden);
        layer.over(m);
    }
    product("query up", heads * head, rank);
    layer.over(own);
    product("keys down", keys, network.hidden);
    layer.over(m);
    product("keys and values up", heads * (latent.qk_nope_head_dim + latent.v_head_dim), latent.kv_lora_rank);
    Architecture scores = network;  // all heads have keys of their own once they are unpacked
    scores.kv_heads = network.heads;
    scores.head_dim = head;
    layer.attention(scores, attended);
    layer.gemm("attention output", network.hidden, heads * latent.v_head_dim);
    if (adapters && adapters->output) layer.adapter(network.hidden, heads * latent.v_head_dim);
}

void factored_attention(OperatorBuilder& layer, const Architecture& network, const Layout& layout, std::int64_t m,
                        const Attended& attended) {
    const std::int64_t shared = network.attention.share_q_dim, keys = 2 * network.kv_heads * network.head_dim;
    const std::int64_t queries = network.heads * network.head_dim / layout.tp;
    layer.over(m);
    layer.tensor_parallel(shared + keys, network.hidden);
    layer.over(own_positions(m, layout));
    layer.gemm("query down", shared, network.hidden);
    layer.gemm("keys and values", keys, network.hidden);
    layer.over(m);
    layer.gemm("query up", queries, shared);
    layer.attention(network, attended);
    layer.gemm("attention output", network.hidden, queries);
}

}  // namespace

bool has_compressed_attention(const Architecture& network) {
    return network.attention.kind == AttentionKind::latent || network.attention.kind == AttentionKind::factored;
}

std::int64_t compressed_attention_columns(const Architecture& network, const Layout& layout) {
    const auto& attention = network.attention;
    if (attention.kind == AttentionKind::latent)
        return 2 * network.heads * (attention.qk_nope_head_dim + attention.qk_rope_head_dim);
    return (network.heads + network.kv_heads * layout.tp) * network.head_dim;
}

void compressed_attention(OperatorBuilder& layer, const Architecture& network, const Layout& layout, std::int64_t m,
                          const Attended& attended) {
    if (network.attention.kind == AttentionKind::latent)
        latent_attention(layer, network, layout, m, attended);
    else
        factored_attention(layer, network, layout, m, attended);
}

}  // namespace pipeweaver::emulator
