#include "pipeweaver/emulator/pass_cost.hpp"

#include "emulator/device_constants.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::emulator {

Duration PassCost::total() const {
    Duration sum{};
    for (const auto& row : shares)
        for (const Share& share : row) sum += share.time;
    return sum;
}

PassCost& PassCost::operator+=(const PassCost& other) {
    for (std::size_t c = 0; c < operator_classes; ++c)
        for (std::size_t b = 0; b < bases; ++b) {
            shares[c][b].time += other.shares[c][b].time;
            shares[c][b].error_ns += other.shares[c][b].error_ns;
        }
    return *this;
}

PassCost operator*(std::int64_t times, const PassCost& cost) {
    PassCost product = cost;
    for (auto& row : product.shares)
        for (auto& share : row) {
            share.time *= times;
            share.error_ns *= static_cast<double>(times);
        }
    return product;
}

InSituFactors in_situ_factors(std::string_view device) {
    if (const auto fitted = fitted_constants(device))
        return {fitted->compute, fitted->collectives, std::string(fitted->rows)};
    const auto like = [](std::string_view other, std::string_view source) {
        const auto fitted = *fitted_constants(other);
        return InSituFactors{fitted.compute, fitted.collectives, std::string(source)};
    };
    if (device.starts_with("a100"))
        return like("a100_sxm", "assumed as on A100-SXM: no runs of this device were at hand");
    if (device.starts_with("h")) return like("h100_sxm", "assumed as on H100: no runs of this device were at hand");
    return {1.0, 1.0, "none fitted"};
}

InSituFactors in_situ_factors(const costdb::CostDatabase& costs, std::string_view device) {
    const auto& own = costs.measurements().in_situ;
    if (!own) return in_situ_factors(device);
    return {static_cast<double>(own->compute_ppm) / 1e6, static_cast<double>(own->tp_exposed_ppm) / 1e6, own->note};
}

costdb::Attention asked_for(const PackedAttention& query) {
    return costdb::equal_batch(query.shape, {query.lengths, query.keys});
}

costdb::Cost ask(const costdb::CostDatabase& costs, const Operator& op) {
    return std::visit(
        [&](const auto& query) {
            if constexpr (std::is_same_v<std::decay_t<decltype(query)>, PackedAttention>)
                return costs.packed_attention(query.shape, {query.lengths, query.keys});
            else
                return costs.cost(query);
        },
        op.query);
}

PassCost price(std::span<const Operator> operators, const costdb::CostDatabase& costs, const InSituFactors& factors) {
    PassCost sum;
    for (const Operator& op : operators) {
        const costdb::Cost cost = ask(costs, op);
        const double factor = op.kind() == OperatorClass::collective ? factors.tp_exposed : factors.compute;
        const auto time = std::llround(static_cast<double>(cost.duration.count()) * factor);
        auto& share = sum.shares[static_cast<std::size_t>(op.kind())][static_cast<std::size_t>(cost.basis)];
        share.time += Duration{time};
        share.error_ns += static_cast<double>(time) * cost.error_percent / 100;
    }
    return sum;
}

}  // namespace pipeweaver::emulator
