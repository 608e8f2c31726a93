#include "emulator/pricing/price.hpp"

#include "emulator/operators/expert_operators.hpp"
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

double of_kernel(const Operator& op, const InSituFactors& in_situ, const KernelFactors& recipe) {
    const ClassFactors& device = in_situ.factors;
    switch (op.kind()) {
        case OperatorClass::gemm:
            return device.products * recipe.products;
        case OperatorClass::experts:
            return device.products * recipe.experts;
        case OperatorClass::attention:
            return device.attention * recipe.attention *
                   (in_situ.after_ampere ? recipe.after_ampere(std::get<PackedAttention>(op.query).shape.causal) : 1);
        case OperatorClass::linear:
            return device.attention * recipe.attention;
        case OperatorClass::elementwise:
            return device.memory_bound * recipe.memory_bound;
        default:
            return 1;
    }
}

// NCCL's collectives were fitted, on runs inside nodes for the most part. Dispatchers that send a token once to a node
// have kernels of their own: on B200 they reach 45 of a network's 50 GB/s (DeepEP, README, two nodes of eight).
bool has_kernels_of_its_own(const Operator& op, const Recipe& recipe) {
    if (op.name != dispatch && op.name != combine) return false;
    if (recipe.execution.experts.dispatcher != Dispatcher::once_a_node) return false;
    const auto& exchange = std::get<costdb::Collective>(op.query);
    return exchange.gpus > exchange.gpus_per_node;
}

}  // namespace

double in_situ_factor(const Operator& op, const InSituFactors& factors, const Recipe& recipe) {
    const bool in_pieces = recipe.execution.tensor_overlap == TensorOverlap::inside_gemms;
    switch (op.stream) {
        case Stream::compute:
            return of_kernel(op, factors, recipe.kernels);
        case Stream::tensor:
            return factors.factors.traffic * recipe.kernels.traffic * (in_pieces ? factors.inside_gemms : 1);
        case Stream::context: {
            const bool of_experts = moves_tokens(op.name);
            return (has_kernels_of_its_own(op, recipe) ? 1 : factors.factors.traffic) * recipe.kernels.traffic *
                   (of_experts ? recipe.execution.experts.exposed : 1);
        }
        case Stream::data:
            return factors.factors.traffic * recipe.kernels.traffic;
        default:
            return 1;
    }
}

namespace {

costdb::Cost over_host_link(const Operator& op, const Recipe& recipe) {
    return {std::get<costdb::PointToPoint>(op.query).message / recipe.host_link, costdb::Basis::modelled, 0};
}

bool is_row(const std::vector<Operator>& operators) {
    return std::all_of(operators.begin(), operators.end(), [](const Operator& op) { return op.after.empty(); });
}

}  // namespace

PricedOperators price(std::vector<Operator> operators, const costdb::CostDatabase& costs, const InSituFactors& factors,
                      const Recipe& recipe, const TimeFactor& what_if) {
    PricedOperators priced;
    PassCost& sum = priced.cost;
    for (const Operator& op : operators) {
        const bool copied = op.stream == Stream::copy;
        const costdb::Cost cost = copied ? over_host_link(op, recipe) : ask(costs, op);
        const double factor = in_situ_factor(op, factors, recipe) * (what_if ? what_if(op) : 1.0);
        const Duration time{std::llround(static_cast<double>(cost.duration.count()) * factor)};
        auto& share = sum.shares[static_cast<std::size_t>(op.kind())][static_cast<std::size_t>(cost.basis)];
        share.time += time;
        share.error_ns += static_cast<double>(time.count()) * cost.error_percent / 100;
        priced.duration.push_back(time);
        sum.time += time;
        ++sum.kernels;
        if (op.stream != Stream::compute) sum.exposed[static_cast<std::size_t>(op.stream)] += time;
    }
    if (!is_row(operators)) set_times(list_graph(operators, priced.duration, recipe).graph, sum);
    priced.operators = std::move(operators);
    return priced;
}

PassCost price(std::span<const Operator> operators, const costdb::CostDatabase& costs, const InSituFactors& factors) {
    return price({operators.begin(), operators.end()}, costs, factors, Recipe{}).cost;
}

}  // namespace pipeweaver::emulator
