#include "emulator/operators/linear_attention.hpp"

namespace pipeweaver::emulator {

using costdb::ElementwiseKind;
using workloads::LinearAttention;
using workloads::LinearKind;

namespace {

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

}  // namespace

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

}  // namespace pipeweaver::emulator
