#include "partition/cut.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::partition {

namespace {

// Fills parts up to `limit`, always leaving one weight for each part to come; nothing if more parts are needed.
std::vector<std::size_t> fill(std::span<const std::int64_t> weights, std::size_t parts, std::int64_t limit) {
    std::vector<std::size_t> ends;
    std::size_t i = 0;
    for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t last = weights.size() - (parts - part - 1);
        std::int64_t sum = 0;
        const std::size_t begin = i;
        while (i < last && (sum + weights[i] <= limit || i == begin)) sum += weights[i++];
        if (sum > limit) return {};
        ends.push_back(i);
    }
    if (i < weights.size()) return {};
    return ends;
}

}  // namespace

std::vector<std::size_t> cut_evenly(std::span<const std::int64_t> weights, std::size_t parts) {
    PIPEWEAVER_ASSERT(parts >= 1 && parts <= weights.size());
    std::int64_t low = *std::max_element(weights.begin(), weights.end());
    std::int64_t high = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (fill(weights, parts, middle).empty())
            low = middle + 1;
        else
            high = middle;
    }
    return fill(weights, parts, low);
}

}  // namespace pipeweaver::partition
