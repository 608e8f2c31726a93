#include "capacity/jobs/knapsack.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::capacity {

namespace {

constexpr Wide no_way = Wide{1} << 126;

struct Size {
    std::size_t units = 0;  // of GPUs that can be given away
    std::int64_t unit = 1;
    std::size_t steps = 0;
};

Size size_of(std::span<const KnapsackItem> items, std::int64_t capacity) {
    std::int64_t unit = 0, most = 0;
    std::size_t options = 0;
    for (const KnapsackItem& item : items) {
        std::int64_t largest = 0;
        for (const KnapsackOption& option : item) {
            unit = std::gcd(unit, option.gpus);
            largest = std::max(largest, option.gpus);
        }
        most += largest;
        options += item.size();
    }
    unit = std::max<std::int64_t>(1, unit);
    const auto units = static_cast<std::size_t>(std::min(capacity, most) / unit);
    return {units, unit, (units + 1) * options};
}

}  // namespace

std::optional<std::vector<std::size_t>> least_cost(std::span<const KnapsackItem> items, std::int64_t capacity) {
    const Size size = size_of(items, capacity);
    constexpr std::size_t most_steps = 200'000'000;
    if (size.steps > most_steps)
        fail(ErrorKind::limit, "sharing {} GPUs in units of {} out to {} jobs takes {} steps, allowed are {}", capacity,
             size.unit, items.size(), size.steps, most_steps);
    const std::size_t width = size.units + 1;
    std::vector<Wide> before(width, 0), after(width);  // least cost of the items so far within so many units
    std::vector<std::uint16_t> taken(items.size() * width);
    for (std::size_t i = 0; i < items.size(); ++i) {
        std::fill(after.begin(), after.end(), no_way);
        for (std::size_t o = 0; o < items[i].size(); ++o) {
            const auto needed = static_cast<std::size_t>(items[i][o].gpus / size.unit);
            for (std::size_t units = needed; units < width; ++units) {
                const Wide earlier = before[units - needed];
                if (earlier == no_way || earlier + items[i][o].cost >= after[units]) continue;
                after[units] = earlier + items[i][o].cost;
                taken[i * width + units] = static_cast<std::uint16_t>(o);
            }
        }
        before.swap(after);
    }
    if (before.back() == no_way) return std::nullopt;
    std::vector<std::size_t> chosen(items.size());
    std::size_t units = size.units;
    for (std::size_t i = items.size(); i-- > 0;) {
        chosen[i] = taken[i * width + units];
        units -= static_cast<std::size_t>(items[i][chosen[i]].gpus / size.unit);
    }
    return chosen;
}

}  // namespace pipeweaver::capacity
