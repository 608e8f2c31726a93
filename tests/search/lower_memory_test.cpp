#include "pipeweaver/search/lower_memory.hpp"

#include "pipeweaver/search/search.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

TEST_CASE("peaks fall while the makespan stays") {
    // One rank, whose order is free: two forwards first hold two bytes, a microbatch at a time holds one.
    Problem problem;
    problem.name = "free";
    problem.ranks.resize(1);
    for (std::uint32_t m = 0; m < 3; ++m) {
        problem.tasks.push_back(
            {RankId{0}, TaskKind::forward, Duration{1}, Bytes{1}, {}, "F", std::int64_t{0}, m, {}, ""});
        problem.tasks.push_back(
            {RankId{0}, TaskKind::backward, Duration{2}, {}, Bytes{1}, "B", std::int64_t{0}, m, {}, ""});
        problem.edges.push_back({TaskId{2 * m}, TaskId{2 * m + 1}, {}});
    }
    validate(problem);
    const Replayer replayer(problem);
    Found found;
    found.schedule = Schedule{{{TaskId{0}, TaskId{2}, TaskId{4}, TaskId{1}, TaskId{3}, TaskId{5}}}, {}};
    found.replay = replayer.replay(*found.schedule);
    REQUIRE(found.replay.peak.front() == Bytes{3});
    found.bound = Duration{9};

    lower_memory(replayer, {}, in_order, found);

    CHECK(found.replay.makespan == Duration{9});
    CHECK(found.replay.peak.front() == Bytes{1});
    CHECK(largest_peak(problem, found.replay) == 1);
}

TEST_CASE("a second objective never costs makespan or memory, and is the same on any threads") {
    const auto cases = testing::cases(60, 5);
    std::uint64_t lower = 0, tried = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = random_problem({.ranks = 3,
                                             .microbatches = 6,
                                             .stages = 6,
                                             .split = n % 3 == 1,
                                             .modes = n % 3 == 0,
                                             .items = n % 2 == 0,
                                             .capped = n % 4 != 0},
                                            700 + n);
        const Replayer replayer(problem);
        Options options;
        options.max_rounds = 4;
        const auto first = solve(replayer, options, in_order);
        if (!first.schedule) continue;
        ++tried;
        auto found = first, again = first;
        lower_memory(replayer, options, in_order, found);
        CHECK(schedule::replay(problem, *found.schedule) == found.replay);
        CHECK(found.replay.outcome == Outcome::completed);
        CHECK(found.replay.makespan <= first.replay.makespan);
        CHECK(largest_peak(problem, found.replay) <= largest_peak(problem, first.replay));
        lower += largest_peak(problem, found.replay) < largest_peak(problem, first.replay) ? 1 : 0;
        if (n % 10 != 0) continue;
        lower_memory(replayer, options, on_threads(2), again);
        CHECK(again.schedule == found.schedule);
        CHECK(again.evaluations == found.evaluations);
    }
    CHECK(tried > cases.share(40));
    CHECK(lower > cases.share(20));
}
