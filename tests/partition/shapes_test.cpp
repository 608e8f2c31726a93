// At most so many shapes: against all ways to group small batches.
#include "pipeweaver/partition/shapes.hpp"

#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>

using namespace pipeweaver;
using namespace pipeweaver::partition;
using workloads::Microbatch;

namespace {

Microbatch of_size(std::int64_t tokens, const std::vector<std::int64_t>& patches = {}) {
    Microbatch one;
    one.tokens = tokens;
    one.lengths = {tokens};
    for (const std::int64_t each : patches) {
        Microbatch::ItemRef item;
        item.size.patches = each;
        one.items.push_back(item);
    }
    return one;
}

std::int64_t largest_positions(const std::vector<Microbatch>& group) {
    std::int64_t tokens = 0, patches = 0;
    std::size_t items = 0;
    for (const Microbatch& one : group) {
        tokens = std::max(tokens, one.tokens);
        items = std::max(items, one.items.size());
        for (const auto& item : one.items) patches = std::max(patches, item.size.patches);
    }
    return static_cast<std::int64_t>(group.size()) * (tokens + static_cast<std::int64_t>(items) * patches);
}

// The least positions of all ways to put the microbatches into at most `most` groups.
std::int64_t by_trying(const std::vector<Microbatch>& all, std::size_t most) {
    std::int64_t best = INT64_MAX;
    std::vector<std::vector<Microbatch>> groups;
    const std::function<void(std::size_t)> place = [&](std::size_t next) {
        if (next == all.size()) {
            std::int64_t sum = 0;
            for (const auto& group : groups) sum += largest_positions(group);
            best = std::min(best, sum);
            return;
        }
        for (std::size_t g = 0; g < groups.size(); ++g) {
            groups[g].push_back(all[next]);
            place(next + 1);
            groups[g].pop_back();
        }
        if (groups.size() == most) return;
        groups.push_back({all[next]});
        place(next + 1);
        groups.pop_back();
    };
    place(0);
    return best;
}

std::vector<Microbatch> drawn(std::uint64_t number, bool items) {
    Random random(4, number);
    std::vector<Microbatch> all;
    for (std::uint64_t k = 4 + random.below(5); k > 0; --k) {
        std::vector<std::int64_t> patches;
        if (items)
            for (std::uint64_t i = random.below(5); i > 0; --i)
                patches.push_back(64 * (1 + static_cast<std::int64_t>(random.below(16))));
        all.push_back(of_size(500 + static_cast<std::int64_t>(random.below(8000)), patches));
    }
    return all;
}

}  // namespace

TEST_CASE("microbatches are padded to two shapes where two are allowed") {
    const auto shaped = in_shapes({of_size(100), of_size(4000), of_size(90), of_size(3900), of_size(100)}, 2);
    std::vector<std::int64_t> tokens;
    for (const Microbatch& one : shaped.microbatches) tokens.push_back(one.tokens);
    CHECK(tokens == std::vector<std::int64_t>{100, 4000, 100, 4000, 100});
    CHECK(shaped.microbatches[2].lengths == std::vector<std::int64_t>{90, 10});
    CHECK(shaped.shapes_before == 4);
    CHECK(shaped.shapes == 2);
    CHECK(shaped.positions_before == 8190);
    CHECK(shaped.positions == 8300);
}

TEST_CASE("with shapes enough nothing is padded but items to the largest of their microbatch") {
    const auto shaped = in_shapes({of_size(100, {64, 128}), of_size(200)}, 9);
    CHECK(shaped.shapes == 2);
    CHECK(shaped.microbatches[1].tokens == 200);
    CHECK(shaped.microbatches[0].items[0].size.patches == 128);
    CHECK(shaped.positions == 300 + 256);
    CHECK(in_shapes({}, 3).shapes == 0);
}

TEST_CASE("of many shapes quantiles are parted, and as many as there are stay as they are") {
    std::vector<Microbatch> many;
    for (std::int64_t k = 1; k <= 2'000; ++k) many.push_back(of_size(10 * k));
    const auto all = in_shapes(many, 2'000);
    CHECK(all.shapes == 2'000);
    CHECK(all.positions == all.positions_before);
    // Of even lengths the best two groups are the halves: 1,000 * 10,000 + 1,000 * 20,000; 8 lengths make a quantile.
    const auto two = in_shapes(many, 2);
    CHECK(two.shapes == 2);
    CHECK(two.positions >= 30'000'000);
    CHECK(two.positions < 30'000'000 + 1'000 * 80);
    CHECK(in_shapes(many, 64).shapes == 64);
}

TEST_CASE("no grouping of text has less padding, and of text and items none less by a tenth") {
    double worst = 1;
    for (std::uint64_t number = 0; number < 40; ++number)
        for (const std::size_t most : {1UL, 2UL, 3UL}) {
            CAPTURE(number);
            CAPTURE(most);
            const auto text = drawn(number, false), mixed = drawn(number, true);
            CHECK(in_shapes(text, most).positions == by_trying(text, most));
            const auto shaped = in_shapes(mixed, most);
            CHECK(shaped.shapes <= most);
            std::set<std::tuple<std::int64_t, std::size_t, std::int64_t>> shapes;
            for (const Microbatch& one : shaped.microbatches)
                shapes.insert({one.tokens, one.items.size(), one.items.empty() ? 0 : one.items[0].size.patches});
            CHECK(shapes.size() <= most);
            const std::int64_t least = by_trying(mixed, most) - shaped.positions_before;
            REQUIRE(least > 0);
            const std::int64_t padding = shaped.positions - shaped.positions_before;
            worst = std::max(worst, static_cast<double>(padding) / static_cast<double>(least));
        }
    CHECK(worst <= 1.1);
}
