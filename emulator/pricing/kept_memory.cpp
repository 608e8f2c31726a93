#include "emulator/pricing/kept_memory.hpp"

#include "pipeweaver/workloads/counts.hpp"

namespace pipeweaver::emulator {

using workloads::Architecture;

namespace {

// Columns of the feed-forward that a position's activation has.
std::int64_t activated(const Architecture& network, std::int64_t layer) {
    if (!is_moe_layer(network, layer)) return network.ffn;
    return network.moe->shared_ffn + network.moe->top_k * network.moe->expert_ffn;
}

// Column-parallel products whose input is gathered: of experts alone there is none behind the attention.
std::int64_t gathered_inputs(const Architecture& network, std::int64_t layer) {
    if (network.kind == workloads::ModuleKind::head) return 1;
    return is_moe_layer(network, layer) && network.moe->shared_ffn == 0 ? 1 : 2;
}

}  // namespace

Bytes kept_besides(const Architecture& network, std::int64_t layer, std::int64_t positions, const Layout& layout,
                   const Recipe& recipe) {
    const KeptBytes& kept = recipe.kept;
    const std::int64_t tp = layout.tp;
    const bool split = recipe.execution.sequence_parallel && !layout.all_positions;
    const std::int64_t h = positions * network.hidden, others = h * (tp - 1);  // of all other GPUs: over tp
    std::int64_t bytes = 0;
    if (!kept.gathers_again && split) bytes += 2 * gathered_inputs(network, layer) * others / tp;
    bytes += 2 * kept.masks * (split ? h / tp : h);
    if (network.kind == workloads::ModuleKind::language_model) bytes += kept.norms * (split ? h / tp : h);
    if (!split) bytes += 8 * others / tp;
    const bool delta =
        workloads::block_parts(network, layer).linear && network.linear->kind == workloads::LinearKind::gated_delta;
    if (delta && !kept.fused_linear_norm) bytes += 2 * positions * network.linear->values() / tp;
    return Bytes{bytes} + kept_gate(network, layer, positions, tp, recipe);
}

Bytes kept_gate(const Architecture& network, std::int64_t layer, std::int64_t positions, std::int64_t tp,
                const Recipe& recipe) {
    if (recipe.kept.fused_gate || !network.gated) return {};
    return Bytes{2 * positions * activated(network, layer) / tp};
}

Bytes kept_logits(const Architecture& network, std::int64_t positions, std::int64_t tp, const Recipe& recipe) {
    return Bytes{recipe.kept.logit * positions * network.vocab / (recipe.kept.split_logits ? tp : 1)};
}

}  // namespace pipeweaver::emulator
