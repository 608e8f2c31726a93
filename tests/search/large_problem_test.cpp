#include "pipeweaver/search/search.hpp"
#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

constexpr std::uint32_t microbatches = 5'100;  // two tasks each: more than initial schedules are tried of at once
constexpr std::int64_t lag = 5'000;

// From rank 0 to rank 1, all but the first with a long way to go: what a rank's work proves goes by the first, the bound of
// one machine knows that the others come late.
Problem all_but_one_late() {
    Problem problem;
    problem.name = "late";
    problem.ranks.resize(2);
    for (std::uint32_t m = 0; m < microbatches; ++m) {
        problem.tasks.push_back(task_of(0, TaskKind::forward, 1, m));
        problem.tasks.push_back(task_of(1, TaskKind::forward, 1, m));
        problem.edges.push_back(edge_of(2 * m, 2 * m + 1, m == 0 ? 0 : lag));
    }
    validate(problem);
    return problem;
}

Found solve_in(std::uint64_t rounds, const Problem& problem) {
    Options options;
    options.max_rounds = rounds;
    return solve(Replayer(problem), options, in_order);
}

}  // namespace

TEST_CASE("a large problem has a good schedule first, bounds that take long when all initial ones were tried") {
    const Problem problem = all_but_one_late();
    const Replayer replayer(problem);
    const Bound quick = best_bound(replayer, BoundEffort::quick), full = best_bound(replayer);
    REQUIRE(quick.value < full.value);

    const Found first = solve_in(0, problem);
    REQUIRE(first.schedule);
    CHECK(first.history.front().found_by == "dual-queue, short first");
    CHECK(first.bound == quick.value);
    CHECK(first.stop_reason == StopReason::rounds);

    const Found last = solve_in(default_rounds, problem);
    CHECK(last.bound == full.value);
    CHECK(last.replay.makespan <= first.replay.makespan);
    CHECK(last.history.front().bound == quick.value);
}
