#include "pipeweaver/emulator/packed_attention.hpp"

#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::emulator {

namespace {

double scores_of(const PackedAttention& attention) {
    double scores = 0;
    for (std::size_t i = 0; i < attention.lengths.size(); ++i)
        scores += static_cast<double>(attention.lengths[i]) *
                  static_cast<double>(attention.keys.empty() ? attention.lengths[i] : attention.keys[i]);
    return scores * static_cast<double>(attention.shape.q_heads);
}

double traffic_ns(const costdb::CostDatabase& costs, double bytes) {
    const costdb::Elementwise moved{.traffic = Bytes{std::max<std::int64_t>(1, std::llround(bytes))}};
    return static_cast<double>(costs.cost(moved).duration.count());
}

costdb::Cost through_memory(const PackedAttention& attention, const costdb::CostDatabase& costs) {
    constexpr double share_of_peak = 0.6, error_percent = 25;
    const bool forward = attention.shape.pass == costdb::Pass::forward;
    const double scores = scores_of(attention);
    const double flops_per_ns = 1e-9 * share_of_peak * workloads::device(costs.device()).bf16_flops;
    const double product = std::max(2 * scores * static_cast<double>(attention.shape.head_dim) / flops_per_ns,
                                    traffic_ns(costs, 2 * scores));
    const double ns = (forward ? 2 : 4) * product + traffic_ns(costs, (forward ? 9 : 12) * scores);
    return {Duration{std::max<std::int64_t>(1, std::llround(ns))}, costdb::Basis::modelled, error_percent};
}

}  // namespace

costdb::Attention PackedAttention::question() const { return costdb::equal_batch(shape, {lengths, keys}); }

costdb::Cost PackedAttention::cost(const costdb::CostDatabase& costs) const {
    costdb::Cost whole = fused ? costs.packed_attention(shape, {lengths, keys}) : through_memory(*this, costs);
    if (density == 1) return whole;
    whole.duration = Duration{std::max(std::int64_t{1}, static_cast<std::int64_t>(std::llround(
                                                            density * static_cast<double>(whole.duration.count()))))};
    whole.basis = std::max(whole.basis, costdb::Basis::extrapolated);
    return whole;
}

}  // namespace pipeweaver::emulator
