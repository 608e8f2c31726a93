#include "pipeweaver/partition/shapes.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/partition/partition.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace pipeweaver::partition {

namespace {

using workloads::Microbatch;

struct Shape {
    std::int64_t tokens = 0, items = 0, patches = 0;  // patches of each item

    std::int64_t positions() const { return tokens + items * patches; }
    friend auto operator<=>(const Shape&, const Shape&) = default;
};

Shape larger(const Shape& a, const Shape& b) {
    return {std::max(a.tokens, b.tokens), std::max(a.items, b.items), std::max(a.patches, b.patches)};
}

Shape own_shape(const Microbatch& microbatch) {
    Shape shape{microbatch.tokens, static_cast<std::int64_t>(microbatch.items.size()), 0};
    for (const auto& item : microbatch.items) shape.patches = std::max(shape.patches, item.size.patches);
    return shape;
}

// A shape that occurs, and how often.
struct Known {
    Shape shape;
    std::int64_t count = 0;
};

using Groups = std::vector<std::size_t>;  // of each known shape

constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t most_known = 256;  // that are looked at one by one

std::int64_t cost_of_group(const std::vector<Known>& known, const Groups& groups, std::size_t g) {
    Known all;
    for (std::size_t i = 0; i < known.size(); ++i)
        if (groups[i] == g) {
            all.shape = larger(all.shape, known[i].shape);
            all.count += known[i].count;
        }
    return all.count * all.shape.positions();
}

std::int64_t cost_of(const std::vector<Known>& known, const Groups& groups, std::size_t most) {
    std::int64_t sum = 0;
    for (std::size_t g = 0; g < most; ++g) sum += cost_of_group(known, groups, g);
    return sum;
}

// In this order; of many, neighbours together, as many in each.
std::vector<Known> in_blocks(const std::vector<Known>& known, const std::vector<std::size_t>& order) {
    std::vector<Known> blocks(std::min(known.size(), most_known));
    for (std::size_t i = 0; i < order.size(); ++i) {
        Known& block = blocks[i * blocks.size() / order.size()];
        block.shape = larger(block.shape, known[order[i]].shape);
        block.count += known[order[i]].count;
    }
    return blocks;
}

// The best groups of neighbours in this order, by dynamic programming over where the last of g groups begins.
Groups neighbours(const std::vector<Known>& known, const std::vector<std::size_t>& order, std::size_t most) {
    const auto blocks = in_blocks(known, order);
    const std::size_t n = blocks.size();
    std::vector<std::vector<std::int64_t>> best(most + 1, std::vector<std::int64_t>(n + 1, endless));
    std::vector<std::vector<std::size_t>> from(most + 1, std::vector<std::size_t>(n + 1, 0));
    best[0][0] = 0;
    for (std::size_t end = 1; end <= n; ++end) {
        Shape shape;
        std::int64_t count = 0;
        for (std::size_t begin = end; begin-- > 0;) {
            shape = larger(shape, blocks[begin].shape);
            count += blocks[begin].count;
            for (std::size_t g = 1; g <= most; ++g) {
                if (best[g - 1][begin] == endless) continue;
                const std::int64_t sum = best[g - 1][begin] + count * shape.positions();
                if (sum >= best[g][end]) continue;
                best[g][end] = sum;
                from[g][end] = begin;
            }
        }
    }
    std::size_t g = 1;
    for (std::size_t k = 2; k <= most; ++k)
        if (best[k][n] < best[g][n]) g = k;
    Groups of_blocks(n), groups(known.size());
    for (std::size_t end = n; g > 0; end = from[g][end], --g)
        for (std::size_t i = from[g][end]; i < end; ++i) of_blocks[i] = g - 1;
    for (std::size_t i = 0; i < order.size(); ++i) groups[order[i]] = of_blocks[i * n / order.size()];
    return groups;
}

// One shape after the other goes to the group where it costs least, as long as that gains.
void exchange_shapes(const std::vector<Known>& known, std::size_t most, Groups& groups) {
    if (known.size() > most_known) return;
    std::vector<std::int64_t> costs;
    for (std::size_t g = 0; g < most; ++g) costs.push_back(cost_of_group(known, groups, g));
    for (bool gained = true; gained;) {
        gained = false;
        for (std::size_t& mine : groups)
            for (std::size_t g = 0; g < most; ++g) {
                if (mine == g) continue;
                const std::size_t before = std::exchange(mine, g);
                const std::int64_t here = cost_of_group(known, groups, g);
                const std::int64_t there = cost_of_group(known, groups, before);
                if (here + there < costs[g] + costs[before]) {
                    costs[g] = here;
                    costs[before] = there;
                    gained = true;
                } else {
                    mine = before;
                }
            }
    }
}

Groups best_groups(const std::vector<Known>& known, std::size_t most) {
    if (most >= known.size()) {
        Groups own(known.size());
        std::iota(own.begin(), own.end(), std::size_t{0});
        return own;
    }
    constexpr std::array<std::int64_t (*)(const Shape&), 4> measures{
        [](const Shape& shape) { return shape.positions(); }, [](const Shape& shape) { return shape.tokens; },
        [](const Shape& shape) { return shape.items; }, [](const Shape& shape) { return shape.patches; }};
    Groups best;
    std::int64_t least = endless;
    for (const auto measure : measures) {
        std::vector<std::size_t> order(known.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return measure(known[a].shape) < measure(known[b].shape);
        });
        Groups groups = neighbours(known, order, most);
        exchange_shapes(known, most, groups);
        if (const std::int64_t cost = cost_of(known, groups, most); cost < least) {
            least = cost;
            best = std::move(groups);
        }
    }
    return best;
}

}  // namespace

Shaped in_shapes(const std::vector<Microbatch>& microbatches, std::size_t most) {
    PIPEWEAVER_ASSERT(most >= 1);
    std::map<Shape, std::int64_t> counts;
    for (const Microbatch& one : microbatches) ++counts[own_shape(one)];
    std::vector<Known> known;
    for (const auto& [shape, count] : counts) known.push_back({shape, count});
    Shaped shaped{.microbatches = microbatches, .shapes_before = known.size()};
    most = std::min(most, std::max<std::size_t>(known.size(), 1));
    const Groups groups = best_groups(known, most);
    std::vector<std::vector<std::size_t>> members(most);
    for (std::size_t m = 0; m < microbatches.size(); ++m) {
        const auto at = std::lower_bound(known.begin(), known.end(), own_shape(microbatches[m]),
                                         [](const Known& a, const Shape& b) { return a.shape < b; });
        members[groups[static_cast<std::size_t>(at - known.begin())]].push_back(m);
    }
    for (const auto& group : members) {
        std::vector<Microbatch> own;
        for (const std::size_t m : group) own.push_back(microbatches[m]);
        Padded padded = pad(own);
        shaped.positions_before += padded.real_tokens + padded.real_patches;
        shaped.positions += padded.padded_tokens + padded.padded_patches;
        shaped.shapes += group.empty() ? 0 : 1;
        for (std::size_t i = 0; i < group.size(); ++i)
            shaped.microbatches[group[i]] = std::move(padded.microbatches[i]);
    }
    return shaped;
}

}  // namespace pipeweaver::partition
