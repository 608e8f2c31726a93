#include "validation/optimizer.hpp"

#include "validation/kernel_times.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::validation {

using namespace emulator;

double optimizer_ns(const costdb::CostDatabase& costs, double parameters) { return traffic_ns(costs, 32 * parameters); }

double distributed_optimizer_ns(const costdb::CostDatabase& costs, double parameters, std::int64_t shards) {
    return traffic_ns(costs, (34 / static_cast<double>(shards) + 8) * parameters);
}

double gradient_all_reduce_ns(const costdb::CostDatabase& costs, double parameters, std::int64_t replicas,
                              std::int64_t tensor_parallel, double network_bytes_per_ns) {
    constexpr std::int64_t node = 8;
    const double bytes = 4 * parameters;
    const auto local = std::max<std::int64_t>(1, std::min(replicas, node / tensor_parallel));
    const double nodes = static_cast<double>(replicas) / static_cast<double>(local);
    const double inside = local == 1 ? 0 : collective_ns(costs, costdb::CollectiveKind::all_reduce, local, bytes);
    const double rings = static_cast<double>(node) / static_cast<double>(local);
    const double across = nodes > 1 ? 2 * (nodes - 1) / nodes * bytes * rings / network_bytes_per_ns : 0;
    return std::max(inside, across);
}

}  // namespace pipeweaver::validation
