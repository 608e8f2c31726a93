#include "emulator/operators/expert_operators.hpp"

namespace pipeweaver::emulator {

namespace {

// Copies for the chosen experts and their sorting after the exchange, each read and written: four passes over the
// copies. As many after the experts.
void move_copies(OperatorBuilder& layer, std::string_view name, std::int64_t copies, std::int64_t hidden) {
    constexpr std::int64_t passes = 4;
    layer.elementwise(name, costdb::ElementwiseKind::other, passes * bf16_width * copies * hidden, 1,
                      {.rows = copies, .columns = hidden});
}

void shared_experts(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout,
                    std::int64_t m) {
    const std::int64_t width = (network.moe->shared_ffn + layout.tp - 1) / layout.tp;
    if (width == 0) return;
    layer.over(m);
    layer.column_parallel("shared up", (network.gated ? 2 : 1) * width, network.hidden);
    layer.row_parallel("shared down", network.hidden, width);
}

}  // namespace

void expert_feed_forward(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout,
                         std::int64_t m) {
    const auto& moe = *network.moe;
    const std::int64_t own = own_positions(m, layout), copies = own * moe.top_k;
    const Bytes message{layer.value_bytes() * copies * network.hidden};
    layer.over(own);
    layer.gemm("router", moe.experts, network.hidden);
    move_copies(layer, "permute", copies, network.hidden);
    layer.exchange_tokens("dispatch", message);
    layer.add("experts", Experts{.layer = {.tokens = own * layout.ep,
                                           .hidden = network.hidden,
                                           .ffn = moe.expert_ffn,
                                           .top_k = moe.top_k,
                                           .experts = moe.experts},
                                 .gpus = layout.ep,
                                 .gated = network.gated,
                                 .pass = layer.pass()});
    layer.exchange_tokens("combine", message);
    move_copies(layer, "unpermute", copies, network.hidden);
    shared_experts(layer, network, layout, m);
}

}  // namespace pipeweaver::emulator
