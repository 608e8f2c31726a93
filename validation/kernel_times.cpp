#include "validation/kernel_times.hpp"

#include "pipeweaver/emulator/price.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::validation {

using namespace emulator;

using costdb::CollectiveKind;
using costdb::CostDatabase;

namespace {

double ns(const costdb::Cost& cost) { return static_cast<double>(cost.duration.count()); }

Bytes whole(double bytes) { return Bytes{std::max<std::int64_t>(1, std::llround(bytes))}; }

// A ring on B200's NVLink, 900 GB/s: steps * bytes * (n-1)/n / (900 efficiency) + fixed + (n-1) per GPU.
struct Link {
    CollectiveKind kind;
    double steps, efficiency, per_gpu_us, fixed_us;
};
constexpr std::array<Link, 4> b200_links{{{CollectiveKind::all_gather, 1, 0.6735, 9.1828, 23.1049},
                                          {CollectiveKind::reduce_scatter, 1, 0.6731, 8.0325, 25.5604},
                                          {CollectiveKind::all_reduce, 2, 0.7424, 5.5183, 22.2316},
                                          {CollectiveKind::all_to_all, 1, 0.5968, 7.3039, 0}}};

double fixed_us(const Link& link, std::int64_t gpus) {
    if (link.kind != CollectiveKind::all_to_all) return link.fixed_us;
    return gpus == 2 ? 51.0578 : gpus == 4 ? 19.2102 : 0;
}

double b200_collective_ns(CollectiveKind kind, std::int64_t gpus, double bytes) {
    constexpr double bytes_per_ns = 900;
    const Link& link =
        *std::find_if(b200_links.begin(), b200_links.end(), [&](const Link& l) { return l.kind == kind; });
    const auto n = static_cast<double>(gpus);
    return link.steps * bytes * (n - 1) / n / (bytes_per_ns * link.efficiency) +
           1e3 * (fixed_us(link, gpus) + (n - 1) * link.per_gpu_us);
}

}  // namespace

double traffic_ns(const CostDatabase& costs, double bytes) { return ns(costs.cost(costdb::Elementwise{whole(bytes)})); }

double collective_ns(const CostDatabase& costs, CollectiveKind kind, std::int64_t gpus, double bytes) {
    if (gpus < 2) return 0;
    if (costs.device() == "b200") return b200_collective_ns(kind, gpus, bytes);
    const auto dtype = kind == CollectiveKind::all_reduce ? costdb::Dtype::fp32 : costdb::Dtype::bf16;
    return ns(costs.cost(costdb::Collective{.kind = kind, .dtype = dtype, .gpus = gpus, .message = whole(bytes)}));
}

double gemm_ns(const CostDatabase& costs, const costdb::Gemm& gemm) { return ns(costs.cost(gemm)); }

double gemms_ns(const CostDatabase& costs, std::span<const Operator> operators) {
    double sum = 0;
    for (const Operator& op : operators)
        if (const auto* gemm = std::get_if<costdb::Gemm>(&op.query)) sum += gemm_ns(costs, *gemm);
    return sum;
}

double operators_ns(const CostDatabase& costs, std::span<const Operator> operators, double compute,
                    double collectives) {
    double sum = 0;
    for (const Operator& op : operators)
        if (const auto* query = std::get_if<costdb::Collective>(&op.query))
            sum +=
                collectives * collective_ns(costs, query->kind, query->gpus, static_cast<double>(query->message.count));
        else
            sum += compute * ns(ask(costs, op));
    return sum;
}

}  // namespace pipeweaver::validation
