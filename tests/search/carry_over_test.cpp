#include "pipeweaver/search/carry_over.hpp"

#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/verified.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Found solve_rounds(const Problem& problem, std::uint64_t rounds, std::vector<Schedule> starts = {}) {
    Options options;
    options.max_rounds = rounds;
    options.starts = std::move(starts);
    return solve(Replayer(problem), options, in_order);
}

}  // namespace

TEST_CASE("the order of a batch carried over to the same batch is as good") {
    const auto problem = random_problem({.ranks = 3, .microbatches = 6, .stages = 6, .capped = false}, 4);
    const auto found = solve_rounds(problem, testing::full_or_short(40, 12));
    REQUIRE(found.schedule);

    const auto carried = carry_over(problem, *found.schedule, Replayer(problem));

    REQUIRE_FALSE(carried.empty());
    CHECK(carried.front().order == found.schedule->order);
    CHECK(solve_rounds(problem, 0, carried).replay.makespan <= found.replay.makespan);
}

TEST_CASE("an order is carried over to batches with other times, items and microbatches, within memory") {
    const auto cases = testing::cases(60, 10);
    std::uint64_t carried_some = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const Shape shape{
            .ranks = 2, .microbatches = 3, .stages = 4, .split = n % 3 == 0, .modes = n % 2 == 0, .items = true};
        auto other = shape;
        other.microbatches = 1 + static_cast<std::uint32_t>(n % 5);
        const auto previous = random_problem(shape, 100 + n), next = random_problem(other, 600 + n);
        const auto found = solve_rounds(previous, 5);
        if (!found.schedule) continue;
        for (const auto& schedule : carry_over(previous, *found.schedule, Replayer(next))) {
            CHECK(schedule::replay(next, schedule).outcome == Outcome::completed);
            ++carried_some;
        }
    }
    CHECK(carried_some > cases.share(60));
}

TEST_CASE("nothing is carried over between batches that have no task alike") {
    auto previous = random_problem({.ranks = 2, .microbatches = 2, .stages = 2, .capped = false}, 1);
    const auto found = solve_rounds(previous, 1);
    auto next = previous;
    for (Task& task : next.tasks) task.module = "another";

    CHECK(carry_over(previous, *found.schedule, Replayer(next)).empty());
}
