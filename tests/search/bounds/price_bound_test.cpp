#include "search/bounds/price_bound.hpp"

#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "search/bounds/root_bounds.hpp"
#include "search/exact/exact.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>

#include <array>
#include <numeric>
#include <optional>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Task task(std::uint32_t rank, TaskKind kind, std::int64_t duration, std::int64_t acquire, std::int64_t release) {
    return {RankId{rank}, kind, Duration{duration}, Bytes{acquire}, Bytes{release}, "t", {}, {}, {}, ""};
}

// On rank 0 F 2 and B 4 hold 6; between them X 8 on rank 1.
Problem chains(std::uint32_t count, std::int64_t capacity) {
    Problem problem;
    problem.name = "chains";
    problem.ranks.resize(2);
    problem.ranks[0].capacity = Bytes{capacity};
    for (std::uint32_t m = 0; m < count; ++m) {
        problem.tasks.push_back(task(0, TaskKind::forward, 2, 6, 0));
        problem.tasks.push_back(task(1, TaskKind::other, 8, 0, 0));
        problem.tasks.push_back(task(0, TaskKind::backward, 4, 0, 6));
        problem.edges.push_back({TaskId{3 * m}, TaskId{3 * m + 1}, {}});
        problem.edges.push_back({TaskId{3 * m + 1}, TaskId{3 * m + 2}, {}});
    }
    return problem;
}

// Nothing if no schedule fits, or if finding out takes too long.
std::optional<std::int64_t> optimum(const Flat& flat) {
    ExactLimits limits;
    limits.widest = 1'024;
    limits.nodes = 20'000;
    Exact exact(flat, longest_makespan(flat) + 1, limits);
    bool found = false;
    while (exact.state() == Exact::State::working) found = exact.round(in_order) || found;
    if (!found || exact.state() != Exact::State::proven) return std::nullopt;
    return exact.makespan();
}

std::int64_t critical_path(const Flat& flat) {
    std::int64_t longest = 0;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i)
        longest = std::max(longest, flat.head[i] + flat.shortest[i] + flat.tail[i]);
    return longest;
}

// The bound by prices alone, from the critical path on.
std::int64_t price_bound(const Flat& flat, std::span<const std::uint32_t> ranks, std::uint64_t units) {
    PriceBound prices(flat, tightened(flat), ranks, critical_path(flat));
    prices.improve(units);
    return prices.value();
}

// Memory for a microbatch or two, so that it decides.
Problem short_of_memory(std::uint64_t n) {
    Shape shape{.ranks = 2, .microbatches = 3, .stages = 2};
    shape.split = n % 3 == 0;
    shape.modes = n % 4 == 0;
    shape.items = n % 5 == 0;
    if (n % 7 == 0) shape = {.ranks = 3, .microbatches = 2, .stages = 4, .split = shape.split};
    auto problem = random_problem(shape, 7'000 + n);
    for (Rank& rank : problem.ranks) rank.capacity = rank.base + Bytes{1};
    for (const Task& one : problem.tasks) {
        Rank& rank = problem.ranks[index(one.rank)];
        rank.capacity = std::max(*rank.capacity, rank.base + one.acquire + Bytes{static_cast<std::int64_t>(n % 6)});
    }
    return problem;
}

}  // namespace

TEST_CASE("chains that hold the memory one after the other take the sum of their holdings") {
    // One at a time: each holds the memory for 2 + 8 + 4, so three end at 42; the machines alone would allow 30. Slots
    // of time cost the bound a little.
    const auto problem = chains(3, 6);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const std::uint32_t rank = 0;

    PriceBound prices(flat, tightened(flat), std::span(&rank, 1), 14);

    CHECK(prices.memory_pressure() == doctest::Approx(42.0 / 14));
    prices.improve(1'000'000);
    CHECK(prices.value() <= 42);
    CHECK(prices.value() >= 40);
    CHECK(optimum(flat) == 42);
    CHECK(best_bound(replayer).name == "memory over time");
}

TEST_CASE("memory that is held in part counts in part") {
    // Room for one and a half: 3 chains hold 6 of 9 for 14 each, 28 of the whole.
    const auto problem = chains(3, 9);
    const Replayer replayer(problem);
    const Flat flat(replayer);

    PriceBound prices(flat, tightened(flat), std::array<std::uint32_t, 1>{0}, 14);

    CHECK(prices.memory_pressure() == doctest::Approx(28.0 / 14));
}

TEST_CASE("where memory is plenty, prices find what the machine needs") {
    // Rank 1 has nothing to do before 2, then 5 times 8, then 4 follow: 46.
    const auto problem = chains(5, 1'000);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const std::int64_t bound = price_bound(flat, std::array<std::uint32_t, 2>{0, 1}, 3'000'000);
    CHECK(bound <= 46);
    CHECK(bound >= 44);
}

TEST_CASE("the price bound never exceeds the optimum") {
    const auto cases = testing::cases(400);
    std::uint64_t solved = 0, above = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = short_of_memory(n);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        const auto best = optimum(flat);
        if (!best) continue;
        ++solved;
        std::vector<std::uint32_t> ranks(problem.ranks.size());
        std::iota(ranks.begin(), ranks.end(), 0U);
        const auto first = std::span(ranks).first(1), last = std::span(ranks).last(1);
        std::int64_t largest = 0;
        for (const auto chosen : {first, last, std::span<std::uint32_t>(ranks)}) {
            const std::int64_t bound = price_bound(flat, chosen, 60'000);
            CHECK(bound <= *best);
            largest = std::max(largest, bound);
        }
        if (largest > critical_path(flat)) ++above;
    }
    CHECK(solved > cases.share(250));
    CHECK(above > solved / testing::full_or_short(4U, 8U));
}

TEST_CASE("lower bounds with memory in them never exceed the optimum") {
    const auto cases = testing::cases(200);
    std::uint64_t said = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = short_of_memory(n);
        const Replayer replayer(problem);
        const auto best = optimum(Flat(replayer));
        if (!best) continue;
        const auto bounds = lower_bounds(replayer);
        if (bounds.back().name == "memory over time") ++said;
        for (const Bound& bound : bounds) CHECK(bound.value.count() <= *best);
    }
    CHECK(said > cases.share(50));
}

TEST_CASE("the bound sees the memory of the instance where it decides") {
    const auto folder = testing::shared_folder();
    if (!folder) {
        testing::left_out("the bound of an instance of the shared folder, which is not there");
        return;
    }
    const auto path = *folder / "data/schedules/dip-vlm-l-m8-s1";
    const auto file = read_problem(path.string() + ".json.gz");
    const Replayer replayer(file.problem);
    const auto known = replayer.replay(read_schedule(path.string() + ".solution.json.gz", file)).makespan;

    const Bound bound = best_bound(replayer);

    CHECK(bound.name == "memory over time");
    CHECK(bound.value < known);
    CHECK(relative_gap(known, bound.value) < 0.19);
}
