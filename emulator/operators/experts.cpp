#include "pipeweaver/emulator/experts.hpp"

#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/host_wait.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/product_format.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::emulator {

namespace {

// Forward times, as multiples of it: input gradient, weight gradient.
double forwards_of(costdb::Pass pass) {
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

// Of the whole layer's forward, what these take of it.
costdb::Cost part_of(costdb::Cost whole, const Experts& experts) {
    const double times = forwards_of(experts.pass) * (experts.gated ? 1 : 2. / 3) / static_cast<double>(experts.gpus);
    const auto ns = std::llround(times * static_cast<double>(whole.duration.count()));
    whole.duration = Duration{std::max<std::int64_t>(1, ns)};
    // A part of a measured layer is like it, and a backward a measured forward by a ratio.
    const auto best = experts.gpus > 1 || !experts.gated      ? costdb::Basis::extrapolated
                      : experts.pass != costdb::Pass::forward ? costdb::Basis::interpolated
                                                              : costdb::Basis::exact;
    whole.basis = std::max(whole.basis, best);
    return whole;
}

// Dense, per second.
double dense_peak(const workloads::Device& device, costdb::Dtype dtype) {
    if (dtype == costdb::Dtype::nvfp4) return device.fp4_flops;
    return is_narrow(dtype) ? device.fp8_flops : device.bf16_flops;
}

}  // namespace

// A product for each expert and matrix, and the activation function between them.
costdb::Cost Experts::as_products(const costdb::CostDatabase& costs) const {
    const std::int64_t rows =
        std::max<std::int64_t>(1, (layer.tokens * layer.top_k + layer.experts - 1) / layer.experts);
    const std::int64_t wide = (gated ? 2 : 1) * layer.ffn, own = std::max<std::int64_t>(1, layer.experts / gpus);
    const auto product = [&](std::int64_t n, std::int64_t k) {
        return costs.cost(costdb::Gemm{.dtype = layer.dtype, .m = rows, .n = n, .k = k, .pass = pass});
    };
    const costdb::Cost up = product(wide, layer.hidden), down = product(layer.hidden, layer.ffn);
    costdb::Cost answer{own * (up.duration + down.duration), std::max(up.basis, down.basis),
                        std::max(up.error_percent, down.error_percent)};
    if (pass == costdb::Pass::backward_weight) return answer;
    const bool forward = pass == costdb::Pass::forward;
    constexpr std::int64_t width = 2;  // of a value
    const Bytes traffic{width * rows * own * (wide + layer.ffn) * (forward ? 2 : 3) / 2};
    const auto between = forward ? costdb::Pass::forward : costdb::Pass::backward;
    answer.duration +=
        costs.cost(costdb::Elementwise{traffic, costdb::ElementwiseKind::norm_activation, between}).duration;
    return answer;
}

costdb::Cost Experts::cost(const costdb::CostDatabase& costs) const {
    costdb::Cost whole = costs.cost(layer);
    if (whole.basis <= costdb::Basis::interpolated) return part_of(whole, *this);
    const bool eight_bit = is_narrow(layer.dtype);
    const auto fitted = constants_like(costs.device());
    // It was not measured: products at the share of the peak that was fitted to steps.
    if (fitted && fitted->grouped_gemm_share < 1) {
        const workloads::Device& device = workloads::device(costs.device());
        const double flops_per_ns = 1e-9 * fitted->grouped_gemm_share * dense_peak(device, layer.dtype);
        const double three = 6. * static_cast<double>(layer.tokens * layer.top_k) * static_cast<double>(layer.hidden) *
                             static_cast<double>(layer.ffn);
        whole.duration = Duration{std::llround(three / flops_per_ns)};
        return part_of(whole, *this);
    }
    costdb::Cost products = as_products(costs);
    products.basis = std::max(products.basis, costdb::Basis::extrapolated);
    // Products in 8 bits were measured with the cast of their inputs, which tuned layers of experts have not.
    const costdb::Cost as_measured = part_of(whole, *this);
    const bool faster = whole.basis == costdb::Basis::extrapolated && as_measured.duration < products.duration;
    return eight_bit && faster ? as_measured : products;
}

costdb::Cost HostWait::cost(const costdb::CostDatabase&) const {
    constexpr double error_percent = 20;
    return {wait, costdb::Basis::modelled, error_percent};
}

double Experts::flops() const {
    const double passes = pass == costdb::Pass::backward ? 2 : 1;
    return passes * (gated ? 6 : 4) * static_cast<double>(layer.tokens * layer.top_k) / static_cast<double>(gpus) *
           static_cast<double>(layer.hidden) * static_cast<double>(layer.ffn);
}

}  // namespace pipeweaver::emulator
