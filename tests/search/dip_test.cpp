#include "search/dip/dip.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/search/search.hpp"
#include "search/dip/dip_tree.hpp"
#include "search/instance/modes.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/verified.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Found solve_dip(const Problem& problem, std::uint64_t rounds, const Executor& execute = in_order) {
    Options options;
    options.strategy = "dip";
    options.max_rounds = rounds;
    return solve(Replayer(problem), options, execute);
}

// The smallest makespan of all orders of items, by trying every one; nothing if none fits.
std::optional<Duration> best_of_all_orders(const Problem& problem) {
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const auto items = dip_items(flat);
    const auto base = frugal_modes(flat).front();
    Dispatcher dispatcher(flat);
    if (dispatcher.prepare(flat.costs(base))) return std::nullopt;
    DipMemory memory(flat);
    std::vector<std::uint32_t> order(items.size()), position(flat.tasks());
    std::iota(order.begin(), order.end(), 0U);
    std::optional<Duration> best;
    do {
        std::uint32_t next = 0;
        for (const std::uint32_t item : order)
            for (const std::uint32_t task : items[item]) position[task] = next++;
        dispatcher.run(Choice::dual_queue, position);
        const auto mode = memory.choose(dispatcher.sequence(), base);
        const auto replayed = replayer.replay(as_schedule(flat, dispatcher.sequence(), mode));
        CHECK(replayed.outcome == Outcome::completed);
        best = std::min(best.value_or(Duration::max()), replayed.makespan);
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
}

std::int64_t sum_of_times(const Problem& problem, const std::vector<std::uint32_t>& mode, std::size_t rank) {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < mode.size(); ++k) {
        const Mode& chosen = problem.pairs[k].modes[mode[k]];
        if (index(problem.tasks[index(problem.pairs[k].forward)].rank) == rank)
            sum += (chosen.forward + chosen.backward + chosen.weight).count();
    }
    return sum;
}

// The smallest sum of times on the rank of all modes under which the schedule's order fits, by trying everything.
std::int64_t least_sum(const Problem& problem, Schedule schedule, std::size_t rank) {
    const Replayer replayer(problem);
    std::vector<std::size_t> mine;
    for (std::size_t k = 0; k < problem.pairs.size(); ++k)
        if (index(problem.tasks[index(problem.pairs[k].forward)].rank) == rank) mine.push_back(k);
    std::int64_t least = INT64_MAX;
    for (std::size_t number = 0;; ++number) {
        std::size_t left = number;
        for (const std::size_t k : mine) {
            schedule.mode[k] = static_cast<std::uint32_t>(left % problem.pairs[k].modes.size());
            left /= problem.pairs[k].modes.size();
        }
        if (left > 0) return least;
        if (replayer.replay(schedule).outcome == Outcome::completed)
            least = std::min(least, sum_of_times(problem, schedule.mode, rank));
    }
}

}  // namespace

TEST_CASE("the tree gives every sequence once and then no more") {
    DipTree tree(4);
    std::set<std::vector<std::uint32_t>> whole;
    int selected = 0;
    for (; !tree.exhausted(); ++selected) {
        const auto node = tree.select();
        REQUIRE(node);
        const auto sequence = tree.beginning(*node);
        CHECK(std::set(sequence.begin(), sequence.end()).size() == sequence.size());
        if (sequence.size() == 4) CHECK(whole.insert(sequence).second);
        tree.record(*node, 100 + selected % 7);
    }
    CHECK(whole.size() == 24);
    CHECK(selected == 4 + 12 + 24 + 24);
    CHECK_FALSE(tree.select());
}

TEST_CASE("the tree goes where a good completion was, and still looks elsewhere") {
    DipTree tree(12);
    // Sequences that begin with item 3 are twice as good.
    std::map<std::uint32_t, int> first;
    for (int k = 0; k < 2000; ++k) {
        const auto node = tree.select();
        const auto sequence = tree.beginning(*node);
        ++first[sequence.front()];
        tree.record(*node, sequence.front() == 3 ? 50 : 100);
    }
    CHECK(first[3] > 1000);
    CHECK(first.size() == 12);
}

TEST_CASE("items are a module's tasks of a microbatch in one direction, whatever their segments") {
    const auto problem = random_problem({.ranks = 2, .microbatches = 3, .stages = 4, .capped = false}, 5);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const auto items = dip_items(flat);
    std::size_t tasks = 0;
    std::set<std::tuple<std::int64_t, std::string, int>> seen;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
        tasks += items[i].size();
        const Task& first = problem.tasks[items[i].front()];
        CHECK(seen.emplace(*first.microbatch, first.module, flat.late[items[i].front()]).second);
        for (const std::uint32_t task : items[i]) {
            CHECK(problem.tasks[task].microbatch == first.microbatch);
            CHECK(problem.tasks[task].module == first.module);
            CHECK(flat.late[task] == flat.late[items[i].front()]);
        }
    }
    CHECK(tasks == problem.tasks.size());
}

TEST_CASE("modes by rank fit, and are within a twentieth of the smallest sum of times nearly always") {
    const auto cases = testing::cases(150, 50);
    std::uint64_t close = 0, ranks = 0, improved = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem =
            random_problem({.ranks = 2, .microbatches = 3, .stages = 3, .split = n % 3 == 0, .modes = true}, 300 + n);
        if (problem.pairs.empty() || problem.pairs.size() > 10) continue;
        const Replayer replayer(problem);
        const Flat flat(replayer);
        const auto base = frugal_modes(flat).front();
        Dispatcher dispatcher(flat);
        if (dispatcher.prepare(flat.costs(base))) continue;
        dispatcher.run(Choice::dual_queue, flat.place);
        DipMemory memory(flat);

        const auto mode = memory.choose(dispatcher.sequence(), base);

        const auto schedule = as_schedule(flat, dispatcher.sequence(), mode);
        CHECK(replayer.replay(schedule).outcome == Outcome::completed);
        for (std::size_t rank = 0; rank < problem.ranks.size(); ++rank) {
            const std::int64_t sum = sum_of_times(problem, mode, rank), least = least_sum(problem, schedule, rank);
            CHECK(sum <= sum_of_times(problem, base, rank));
            CHECK(sum >= least);
            improved += sum < sum_of_times(problem, base, rank) ? 1 : 0;
            close += sum * 100 <= least * 105 ? 1 : 0;
            ++ranks;
        }
    }
    CHECK(ranks > cases.share(100));
    CHECK(improved > cases.share(30));
    CHECK(close * 100 >= ranks * testing::full_or_short(95U, 90U));
}

TEST_CASE("dip never exceeds memory, is never worse than its greedy and never better than the optimum") {
    const auto cases = testing::cases(120);
    std::uint64_t solved = 0, better_than_greedy = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = random_problem(
            {.ranks = 2, .microbatches = 2, .stages = 2, .split = n % 3 == 1, .modes = n % 3 == 0}, 2000 + n);
        const auto best = best_by_force(problem);
        const auto greedy = solve_dip(problem, 0), found = solve_dip(problem, 60);
        CHECK(greedy.schedule.has_value() == found.schedule.has_value());
        if (!found.schedule) {
            CHECK(found.why_not.find("rank") != std::string::npos);
            continue;
        }
        ++solved;
        testing::check_verified(problem, found);
        CHECK(found.strategy == "dip");
        CHECK(found.replay.makespan <= greedy.replay.makespan);
        better_than_greedy += found.replay.makespan < greedy.replay.makespan ? 1 : 0;
        REQUIRE(best);
        CHECK(found.replay.makespan >= *best);
        CHECK(found.bound <= *best);
    }
    CHECK(solved > cases.share(60));
    CHECK(better_than_greedy > cases.share(5));
}

TEST_CASE("dip gives the same on any number of threads, and again for the rounds it reports") {
    const auto problem = random_problem({.ranks = 3, .microbatches = 7, .stages = 6, .modes = true, .items = true}, 12);
    const auto rounds = testing::full_or_short<std::uint64_t>(40, 15);
    const auto expected = solve_dip(problem, rounds);
    REQUIRE(expected.schedule);
    for (const int threads : testing::full_or_short<std::vector<int>>({2, 16}, {2})) {
        const auto found = solve_dip(problem, rounds, on_threads(threads));
        CHECK(found.schedule == expected.schedule);
        CHECK(found.evaluations == expected.evaluations);
        CHECK(found.strategy == expected.strategy);
    }
    CHECK(expected.replay.makespan < solve_dip(problem, 0).replay.makespan);
}

TEST_CASE("the tree ends when every order has been tried, with the best of all") {
    const auto cases = testing::cases(20, 8);
    std::uint64_t tried = 0, better_than_greedy = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        auto problem = random_problem({.ranks = 2, .microbatches = 3, .stages = 2, .modes = n % 2 == 0}, 40 + n);
        for (Task& task : problem.tasks) task.module = "all";  // two items a microbatch: 720 orders
        const auto best = best_of_all_orders(problem);
        if (!best) continue;
        ++tried;
        Options options;
        options.strategy = "dip";
        int asked = 0;
        const auto found =
            solve(Replayer(problem), options, in_order, [&](const Progress&) -> std::optional<StopReason> {
                return ++asked > 10'000 ? std::optional(StopReason::budget) : std::nullopt;
            });
        CHECK(asked < 10'000);
        testing::check_verified(problem, found);
        CHECK(found.replay.makespan == *best);
        better_than_greedy += *best < solve_dip(problem, 0).replay.makespan ? 1 : 0;
    }
    CHECK(tried > cases.share(5));
    CHECK(better_than_greedy > cases.share(3));
}

TEST_CASE("dip goes on from a given schedule that is better than its own") {
    const auto problem = random_problem({.ranks = 3, .microbatches = 6, .stages = 6, .items = true}, 33);
    Options options;
    options.max_rounds = testing::full_or_short(100, 25);
    const auto best = solve(Replayer(problem), options, in_order);
    REQUIRE(best.schedule);
    REQUIRE(best.replay.makespan < solve_dip(problem, 0).replay.makespan);
    options = {};
    options.strategy = "dip";
    options.max_rounds = 0;
    options.starts = {*best.schedule};

    const auto found = solve(Replayer(problem), options, in_order);

    CHECK(found.replay.makespan == best.replay.makespan);
    CHECK(found.strategy == "start");
}
