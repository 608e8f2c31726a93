#include "pipeweaver/emulator/price.hpp"

#include "emulator/pricing/pass_graph.hpp"
#include "pipeweaver/costdb/database.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::emulator {

costdb::Cost ask(const costdb::CostDatabase& costs, const Operator& op) {
    return std::visit(
        [&](const auto& query) {
            if constexpr (requires { query.cost(costs); })
                return query.cost(costs);
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
