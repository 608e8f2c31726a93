#include "validation/unfused_attention.hpp"

#include "pipeweaver/workloads/cluster.hpp"
#include "validation/kernel_times.hpp"

#include <algorithm>

namespace pipeweaver::validation {

using namespace emulator;

AttentionTimes unfused_attention(const costdb::CostDatabase& costs, std::int64_t sequences, std::int64_t heads,
                                 std::int64_t seq, std::int64_t head_dim) {
    constexpr double share_of_peak = 0.6;
    const double flops_per_ns = 1e-9 * share_of_peak * workloads::device(costs.device()).bf16_flops;
    const double scores = static_cast<double>(sequences * heads) * static_cast<double>(seq) * static_cast<double>(seq);
    const double product =
        std::max(2 * scores * static_cast<double>(head_dim) / flops_per_ns, traffic_ns(costs, 2 * scores));
    return {2 * product + traffic_ns(costs, 9 * scores), 4 * product + traffic_ns(costs, 12 * scores)};
}

}  // namespace pipeweaver::validation
