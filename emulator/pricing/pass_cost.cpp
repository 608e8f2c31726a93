#include "pipeweaver/emulator/pass_cost.hpp"

#include "emulator/pricing/device_constants.hpp"
#include "emulator/pricing/pass_graph.hpp"

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
    time += other.time;
    kernels += other.kernels;
    for (std::size_t s = 0; s < streams; ++s) exposed[s] += other.exposed[s];
    return *this;
}

PassCost operator*(std::int64_t times, const PassCost& cost) {
    PassCost product = cost;
    for (auto& row : product.shares)
        for (auto& share : row) {
            share.time *= times;
            share.error_ns *= static_cast<double>(times);
        }
    product.time *= times;
    product.kernels *= times;
    for (Duration& waited : product.exposed) waited *= times;
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

namespace {

// Forward times, as multiples of it: input gradient, weight gradient.
double expert_passes(costdb::Pass pass) {
    constexpr double input = 1, weight = 1.05;
    switch (pass) {
        case costdb::Pass::forward:
            return 1;
        case costdb::Pass::backward_input:
            return input;
        case costdb::Pass::backward_weight:
            return weight;
        case costdb::Pass::backward:
            return input + weight;
    }
    return 1;
}

costdb::Cost ask_experts(const costdb::CostDatabase& costs, const Experts& experts) {
    costdb::Cost cost = costs.cost(experts.layer);
    const double times = expert_passes(experts.pass) * (experts.gated ? 1 : 2. / 3) / static_cast<double>(experts.gpus);
    const auto ns = std::llround(times * static_cast<double>(cost.duration.count()));
    cost.duration = Duration{std::max<std::int64_t>(1, ns)};
    // A part of a measured layer is like it, and a backward a measured forward by a ratio.
    const auto best = experts.gpus > 1 || !experts.gated      ? costdb::Basis::extrapolated
                      : experts.pass != costdb::Pass::forward ? costdb::Basis::interpolated
                                                              : costdb::Basis::exact;
    cost.basis = std::max(cost.basis, best);
    return cost;
}

}  // namespace

double Experts::flops() const {
    const double passes = pass == costdb::Pass::backward ? 2 : 1;
    return passes * (gated ? 6 : 4) * static_cast<double>(layer.tokens * layer.top_k) / static_cast<double>(gpus) *
           static_cast<double>(layer.hidden) * static_cast<double>(layer.ffn);
}

costdb::Cost ask(const costdb::CostDatabase& costs, const Operator& op) {
    return std::visit(
        [&](const auto& query) {
            if constexpr (std::is_same_v<std::decay_t<decltype(query)>, PackedAttention>)
                return costs.packed_attention(query.shape, {query.lengths, query.keys});
            else if constexpr (std::is_same_v<std::decay_t<decltype(query)>, Experts>)
                return ask_experts(costs, query);
            else
                return costs.cost(query);
        },
        op.query);
}

namespace {

// What a step makes of a time alone. Tensor-parallel traffic is hidden in part by ways that no graph here shows; of the
// rest only a slow-down is kept.
double in_situ_factor(const Operator& op, const InSituFactors& factors) {
    if (op.stream == Stream::tensor) return factors.tp_exposed;
    if (op.stream == Stream::context) return std::max(1.0, factors.tp_exposed);
    return op.stream == Stream::compute ? factors.compute : 1.0;
}

costdb::Cost over_host_link(const Operator& op, const Training& training) {
    return {std::get<costdb::PointToPoint>(op.query).message / training.host_link, costdb::Basis::modelled, 0};
}

bool is_row(const std::vector<Operator>& operators) {
    return std::all_of(operators.begin(), operators.end(), [](const Operator& op) { return op.after.empty(); });
}

}  // namespace

PricedOperators price(std::vector<Operator> operators, const costdb::CostDatabase& costs, const InSituFactors& factors,
                      const Training& training, const TimeFactor& what_if) {
    PricedOperators priced;
    PassCost& sum = priced.cost;
    for (const Operator& op : operators) {
        const bool copied = op.stream == Stream::copy;
        const costdb::Cost cost = copied ? over_host_link(op, training) : ask(costs, op);
        const double factor = in_situ_factor(op, factors) * (what_if ? what_if(op) : 1.0);
        const Duration time{std::llround(static_cast<double>(cost.duration.count()) * factor)};
        auto& share = sum.shares[static_cast<std::size_t>(op.kind())][static_cast<std::size_t>(cost.basis)];
        share.time += time;
        share.error_ns += static_cast<double>(time.count()) * cost.error_percent / 100;
        priced.duration.push_back(time);
        sum.time += time;
        ++sum.kernels;
        if (op.stream != Stream::compute) sum.exposed[static_cast<std::size_t>(op.stream)] += time;
    }
    if (!is_row(operators)) set_times(list_graph(operators, priced.duration, training).graph, sum);
    priced.operators = std::move(operators);
    return priced;
}

PassCost price(std::span<const Operator> operators, const costdb::CostDatabase& costs, const InSituFactors& factors) {
    return price({operators.begin(), operators.end()}, costs, factors, Training{}).cost;
}

}  // namespace pipeweaver::emulator
