#include "apps/costdb/model_products.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/operators.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::apps {

using costdb::Gemm;
using workloads::Architecture;

namespace {

bool is_same(const Gemm& a, const Gemm& b) {
    return a.dtype == b.dtype && a.m == b.m && a.n == b.n && a.k == b.k && a.batch == b.batch;
}

void add(const std::vector<emulator::Operator>& operators, const costdb::CostDatabase& costs, ModelProducts& all) {
    for (const auto& op : operators) {
        if (const auto* experts = std::get_if<emulator::Experts>(&op.query))
            all.experts =
                costs.cost(experts->layer).basis <= costdb::Basis::interpolated ? Experts::fused : Experts::apart;
        const auto* gemm = std::get_if<Gemm>(&op.query);
        if (gemm == nullptr) continue;
        const auto known = std::find_if(all.products.begin(), all.products.end(), [&](const ModelProduct& one) {
            return one.name == op.name && is_same(one.explained.product, *gemm);
        });
        if (known != all.products.end())
            ++known->times;
        else
            all.products.push_back({std::string(op.name), 1, costdb::explain(costs, *gemm)});
    }
}

double ns_of(const ModelProduct& one) { return static_cast<double>(one.times * one.explained.cost.duration.count()); }

void sum_up(ModelProducts& all) {
    double flops = 0, ns = 0, error = 0;
    for (const auto& one : all.products) {
        flops += static_cast<double>(one.times) * one.explained.flops;
        ns += ns_of(one);
        error += ns_of(one) * one.explained.cost.error_percent;
    }
    if (ns <= 0) return;
    all.tflops_per_s = 1e-3 * flops / ns;
    all.error_percent = error / ns;
}

bool divides(const Architecture& network, std::int64_t tp) {
    return tp >= 1 && network.heads % tp == 0 && network.ffn % tp == 0;
}

struct NetworkAxis {
    const char* name;
    std::int64_t Architecture::*size;
};
constexpr NetworkAxis network_axes[] = {
    {"hidden", &Architecture::hidden}, {"ffn", &Architecture::ffn}, {"vocab", &Architecture::vocab}};

// The product whose time changes most beside its FLOPs: both lists are of the same layers, in the same order.
void say_why(const ModelProducts& here, const ModelProducts& there, const costdb::CostDatabase& costs,
             FasterSize& size) {
    double most = 0;
    for (std::size_t i = 0; i < std::min(here.products.size(), there.products.size()); ++i) {
        const auto &one = here.products[i], &other = there.products[i];
        if (one.name != other.name) continue;
        const double gain = std::log(other.explained.tflops_per_s / one.explained.tflops_per_s) * ns_of(one);
        if (gain <= most) continue;
        most = gain;
        size.product = one.name;
        size.cause = costdb::cause_of_gain(costs, one.explained, other.explained);
    }
}

// The better of the two; `there` is of the size's own network and layout.
void take_if_better(const ModelProducts& here, const ModelProducts& there, const costdb::CostDatabase& costs,
                    FasterSize size, std::optional<FasterSize>& best) {
    size.tflops_per_s = there.tflops_per_s;
    size.gain = there.tflops_per_s / here.tflops_per_s - 1;
    if (size.gain <= (best ? best->gain : costdb::least_gain)) return;
    size.beyond_error = 100 * size.gain > std::max(here.error_percent, there.error_percent);
    say_why(here, there, costs, size);
    if (size.product.empty()) return;  // only the shares of the products change
    best = std::move(size);
}

}  // namespace

ModelProducts products_of(const Architecture& network, std::int64_t tp, std::int64_t m,
                          const costdb::CostDatabase& costs) {
    if (!divides(network, tp))
        fail(ErrorKind::input, "--tp: is {}, must divide {} heads and a feed-forward of {}", tp, network.heads,
             network.ffn);
    const emulator::Layout layout{.tp = tp};
    const emulator::PassShape shape{.lengths = {m}};
    ModelProducts all;
    for (std::int64_t layer = 0; layer < network.layers; ++layer)
        add(emulator::layer_operators(network, shape, layout, emulator::PassKind::forward, layer), costs, all);
    if (network.vocab > 0)
        add(emulator::head_operators(network, shape, layout, emulator::PassKind::forward), costs, all);
    sum_up(all);
    return all;
}

std::vector<FasterSize> faster_sizes(const Architecture& network, std::int64_t tp, std::int64_t m,
                                     const ModelProducts& here, const costdb::CostDatabase& costs) {
    std::vector<FasterSize> all;
    for (const auto& axis : network_axes) {
        std::optional<FasterSize> best;
        const std::int64_t from = network.*axis.size;
        for (const std::int64_t to : costdb::sizes_near(from)) {
            auto other = network;
            other.*axis.size = to;
            if (to % tp != 0) continue;
            take_if_better(here, products_of(other, tp, m, costs), costs, {.axis = axis.name, .from = from, .to = to},
                           best);
        }
        if (best) all.push_back(std::move(*best));
    }
    std::optional<FasterSize> best;
    for (const std::int64_t to : {tp / 2, tp * 2})
        if (divides(network, to))
            take_if_better(here, products_of(network, to, m, costs), costs, {.axis = "tp", .from = tp, .to = to}, best);
    if (best) all.push_back(std::move(*best));
    return all;
}

}  // namespace pipeweaver::apps
