#include "pipeweaver/partition/replicas.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::partition;

namespace {

std::vector<Duration> costs_of(const std::vector<int>& numbers) {
    std::vector<Duration> costs;
    costs.reserve(numbers.size());
    for (const int number : numbers) costs.emplace_back(number);
    return costs;
}

std::int64_t largest_load(const Shares& shares, const std::vector<Duration>& costs) {
    const auto sums = loads(shares, costs);
    return std::max_element(sums.begin(), sums.end())->count();
}

// Every assignment with counts that differ by one at most, tried.
std::int64_t best_largest(const std::vector<Duration>& costs, Shares& shares, std::size_t next) {
    if (next == costs.size()) return largest_load(shares, costs);
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    const std::size_t least = costs.size() / shares.size(), more = costs.size() % shares.size();
    for (auto& share : shares) {
        const auto full = std::count_if(shares.begin(), shares.end(), [&](const auto& s) { return s.size() > least; });
        if (share.size() > least || (share.size() == least && static_cast<std::size_t>(full) >= more)) continue;
        share.push_back(next);
        best = std::min(best, best_largest(costs, shares, next + 1));
        share.pop_back();
    }
    return best;
}

// Each microbatch once, in order, in counts that differ by one at most, larger replicas first.
void check_shares(const Shares& shares, std::size_t microbatches) {
    std::vector<int> seen(microbatches);
    for (const auto& share : shares) {
        CHECK(std::is_sorted(share.begin(), share.end()));
        for (const std::size_t i : share) ++seen.at(i);
        CHECK(share.size() <= shares.front().size());
        CHECK(share.size() + 1 >= shares.front().size());
    }
    CHECK(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
}

}  // namespace

TEST_CASE("in turn, replica r takes every so many-th microbatch from r on") {
    CHECK(in_turn(5, 2) == Shares{{0, 2, 4}, {1, 3}});
}

TEST_CASE("microbatches are balanced as a hand would") {
    // In turn: 9 + 8 against 2 + 1.
    CHECK(balance(costs_of({9, 2, 8, 1}), 2) == Shares{{0, 3}, {1, 2}});
    // Two each, though 7 alone would balance 2 + 2 + 3 better.
    CHECK(balance(costs_of({7, 2, 2, 3}), 2) == Shares{{0, 2}, {1, 3}});
    // Three and two: 5 + 4 + 1 against 6 + 4.
    CHECK(largest_load(balance(costs_of({5, 4, 6, 1, 4}), 2), costs_of({5, 4, 6, 1, 4})) == 10);
    CHECK(balance(costs_of({3, 3, 3}), 1) == Shares{{0, 1, 2}});
    CHECK(balance(costs_of({3, 1}), 3) == Shares{{0}, {1}, {}});
}

TEST_CASE("equal costs leave the microbatches where they are in turn") {
    CHECK(balance(costs_of({4, 4, 4, 4, 4}), 2) == in_turn(5, 2));
}

TEST_CASE("the largest load is never above that in turn, and near the best there is, which trying all shows") {
    Random random(3);
    std::int64_t balanced = 0, turn = 0, best = 0;
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        std::vector<int> numbers(1 + random.below(9));
        for (int& number : numbers) number = static_cast<int>(random.below(round % 2 == 0 ? 1000 : 5));
        const auto costs = costs_of(numbers);
        const std::size_t replicas = 1 + random.below(3);
        const auto shares = balance(costs, replicas);
        check_shares(shares, costs.size());
        Shares empty(replicas);
        const std::int64_t reach = best_largest(costs, empty, 0);
        CHECK(largest_load(shares, costs) >= reach);
        CHECK(largest_load(shares, costs) <= largest_load(in_turn(costs.size(), replicas), costs));
        balanced += largest_load(shares, costs);
        turn += largest_load(in_turn(costs.size(), replicas), costs);
        best += reach;
    }
    CHECK(balanced * 100 <= best * 102);
    CHECK(balanced * 100 < turn * 95);
}

TEST_CASE("large batches are never worse than in turn either") {
    Random random(8);
    for (int round = 0; round < 40; ++round) {
        std::vector<int> numbers(1 + random.below(200));
        for (int& number : numbers) number = 1000 + static_cast<int>(random.below(9000));
        const auto costs = costs_of(numbers);
        const std::size_t replicas = 1 + random.below(16);
        const auto shares = balance(costs, replicas);
        check_shares(shares, costs.size());
        CHECK(largest_load(shares, costs) <= largest_load(in_turn(costs.size(), replicas), costs));
    }
}

TEST_CASE("thousands of microbatches of skewed costs are balanced to a thousandth of the mean") {
    Random random(4);
    std::vector<Duration> costs;
    costs.reserve(16 * 512);
    for (int i = 0; i < 16 * 512; ++i)
        costs.emplace_back(
            static_cast<std::int64_t>(1e8 * (1 + random.uniform() + 3 * random.uniform() * random.uniform())));
    const auto shares = balance(costs, 512);
    check_shares(shares, costs.size());
    std::int64_t total = 0;
    for (const Duration cost : costs) total += cost.count();
    CHECK(largest_load(shares, costs) * 512 <= total + total / 1000);
}

TEST_CASE("a microbatch costs what its passes through a single stage of all layers cost, more with more images") {
    const testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {0, 3, 12});
    const auto times = microbatch_costs(setup, setup.microbatches);

    // One rank, one stage: the schedule problem's tasks are the passes.
    const testing::SmallWorkload alone({.tp = 1, .pp = 1, .dp = 4}, {0, 3, 12});
    auto input = alone.input(alone.cut("megatron"));
    input.modes = {emulator::Recompute::none};
    std::vector<Duration> sums(alone.microbatches.size());
    for (const auto& task : emulator::require_step(build_step(input)).problem.tasks)
        sums[static_cast<std::size_t>(*task.microbatch)] += task.duration;
    CHECK(times == sums);
    CHECK(times[0] < times[1]);
    CHECK(times[1] < times[2]);
}
