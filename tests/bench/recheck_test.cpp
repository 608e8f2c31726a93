#include "bench/recheck.hpp"

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/search/search.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search_tests;

TEST_CASE("the second replay agrees with the first on schedules and on what becomes of them when tasks change places") {
    const auto cases = testing::cases(400, 80);
    std::uint64_t right = 0, overflowing = 0, waiting = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem =
            random_problem({.ranks = 2, .microbatches = 3, .stages = 3, .split = n % 2 == 0, .modes = n % 3 == 0}, n);
        if (problem.tasks.empty()) continue;
        search::Options options;
        options.max_rounds = 0;
        auto found = search::solve(Replayer(problem), options, in_order);
        if (!found.schedule) continue;
        CHECK(bench::refuted(problem, *found.schedule, found.replay.makespan) == "");
        CHECK(bench::refuted(problem, *found.schedule, found.replay.makespan + Duration{1}) != "");
        Random random(n);
        auto& order = found.schedule->order[random.below(2)];
        if (order.size() < 2) continue;
        std::swap(order[random.below(order.size())], order[random.below(order.size())]);
        const auto replay = schedule::replay(problem, *found.schedule);
        const auto why = bench::refuted(problem, *found.schedule, replay.makespan);
        CHECK((why.empty()) == (replay.outcome == Outcome::completed));
        right += why.empty() ? 1 : 0;
        overflowing += why.find("memory") != std::string::npos || why.find("gives back") != std::string::npos ? 1 : 0;
        waiting += why.find("wait") != std::string::npos ? 1 : 0;
    }
    for (const std::uint64_t found : {right, overflowing, waiting}) CHECK(found > cases.share(20));
}

TEST_CASE("the second replay sees a task that is missing, twice or on another rank") {
    const auto problem = random_problem({.ranks = 2, .microbatches = 2, .stages = 2, .capped = false}, 1);
    search::Options options;
    options.max_rounds = 0;
    const auto found = search::solve(Replayer(problem), options, in_order);
    REQUIRE(found.schedule);
    auto missing = *found.schedule, twice = missing, moved = missing;
    missing.order[0].pop_back();
    twice.order[0].push_back(twice.order[0].front());
    moved.order[0].push_back(moved.order[1].back());

    CHECK(bench::refuted(problem, missing, found.replay.makespan).find("runs 0 times") != std::string::npos);
    CHECK(bench::refuted(problem, twice, found.replay.makespan).find("runs 2 times") != std::string::npos);
    CHECK(bench::refuted(problem, moved, found.replay.makespan).find("is not on rank 0") != std::string::npos);
}
