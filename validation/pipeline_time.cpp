#include "validation/pipeline_time.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::validation {

double pipeline_ns(std::span<const double> rank_ns, std::int64_t microbatches, std::int64_t virtual_stages,
                   double transfer_ns) {
    const auto m = static_cast<double>(microbatches), v = static_cast<double>(virtual_stages);
    const double longest = *std::max_element(rank_ns.begin(), rank_ns.end());
    const double sum = std::accumulate(rank_ns.begin(), rank_ns.end(), 0.);
    const double slots = m + static_cast<double>(rank_ns.size()) - 1;
    return m * longest + (sum - longest) / v + slots * v * transfer_ns;
}

double longer_of(double one_ns, double other_ns) {
    return std::sqrt(std::sqrt(std::pow(one_ns, 4) + std::pow(other_ns, 4)));
}

}  // namespace pipeweaver::validation
