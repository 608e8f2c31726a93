#include "search/improve/alternatives.hpp"

#include "pipeweaver/search/search.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Problem problem_with_choices(bool modes) {
    return random_problem({.ranks = 3, .microbatches = 7, .stages = 6, .modes = modes, .items = true}, 12);
}

Options options(std::uint64_t rounds, const AlternativesWanted& wanted) {
    Options made;
    made.max_rounds = rounds;
    made.alternatives = wanted;
    return made;
}

constexpr AlternativesWanted wanted{6, 0.05};

std::uint64_t rounds() { return testing::full_or_short<std::uint64_t>(60, 12); }

// Of the problem with modes, searched once for all tests: alone, and with other schedules handed over.
const Found& alone() {
    static const Found found = solve(Replayer(problem_with_choices(true)), options(rounds(), {}), in_order);
    return found;
}

const Found& with_alternatives() {
    static const Found found = solve(Replayer(problem_with_choices(true)), options(rounds(), wanted), in_order);
    return found;
}

}  // namespace

TEST_CASE("schedules near to the best differ, fit and are handed over by makespan") {
    for (const bool modes : {false, true}) {
        const auto problem = problem_with_choices(modes);
        const Replayer replayer(problem);
        const std::string text = to_json(problem);
        const auto found = modes ? with_alternatives() : solve(replayer, options(rounds(), wanted), in_order);
        REQUIRE(found.schedule);
        CHECK(!found.alternatives.empty());
        CHECK(found.alternatives.size() <= wanted.most);
        std::set<std::string> all{signature(*found.schedule, Duration{0})};
        Duration last = found.replay.makespan;
        for (const FoundSchedule& known : found.alternatives) {
            CHECK(known.makespan >= last);
            last = known.makespan;
            CHECK(static_cast<double>(known.makespan.count()) <=
                  (1 + wanted.within) * static_cast<double>(found.replay.makespan.count()));
            CHECK(!known.strategy.empty());
            CHECK(all.insert(signature(known.schedule, Duration{0})).second);
            Found alone = found;
            alone.schedule = known.schedule;
            alone.replay = replayer.replay(known.schedule);
            REQUIRE(alone.replay.outcome == Outcome::completed);
            CHECK(alone.replay.makespan == known.makespan);
            const auto verdict =
                testing::verify(text, to_json(solution(alone, problem, parse_problem("p", text).sha256)));
            CHECK_MESSAGE(verdict.ok, verdict.violation);
        }
    }
}

TEST_CASE("handing over more schedules changes nothing of the search, and not by who ran it") {
    const auto problem = problem_with_choices(true);
    const Replayer replayer(problem);
    const Found& expected = with_alternatives();
    CHECK(alone().alternatives.empty());
    CHECK(alone().schedule == expected.schedule);
    CHECK(alone().evaluations == expected.evaluations);
    REQUIRE(expected.alternatives.size() > 2);
    for (const int threads : testing::full_or_short<std::vector<int>>({2, 16}, {2})) {
        const auto found = solve(replayer, options(rounds(), wanted), on_threads(threads));
        REQUIRE(found.alternatives.size() == expected.alternatives.size());
        for (std::size_t i = 0; i < found.alternatives.size(); ++i) {
            CHECK(found.alternatives[i].schedule == expected.alternatives[i].schedule);
            CHECK(found.alternatives[i].strategy == expected.alternatives[i].strategy);
        }
    }
}

TEST_CASE("near schedules keep a target's rules") {
    const auto problem = random_problem({.ranks = 2, .microbatches = 6, .stages = 4}, 3);
    const Replayer replayer(problem);
    auto asked = options(testing::full_or_short<std::uint64_t>(40, 12), {10, 0.1});
    asked.rules.fixed_order.resize(problem.ranks.size());
    for (std::size_t i = 0; i < problem.tasks.size(); ++i)
        if (index(problem.tasks[i].rank) == 1 && problem.tasks[i].kind == TaskKind::forward)
            asked.rules.fixed_order[1].push_back(TaskId{static_cast<std::uint32_t>(i)});
    const auto found = solve(replayer, asked, in_order);
    REQUIRE(found.schedule);
    REQUIRE(!found.alternatives.empty());
    for (const FoundSchedule& known : found.alternatives) {
        std::vector<TaskId> forwards;
        for (const TaskId task : known.schedule.order[1])
            if (problem.tasks[index(task)].kind == TaskKind::forward) forwards.push_back(task);
        CHECK(forwards == asked.rules.fixed_order[1]);
    }
}

TEST_CASE("the history of a search begins with its start, only gets better, and ends with its schedule") {
    for (const char* strategy : {"default", "dip"}) {
        const auto problem = problem_with_choices(true);
        auto asked = options(rounds(), {});
        asked.strategy = strategy;
        const auto found = strategy == std::string("default") ? alone() : solve(Replayer(problem), asked, in_order);
        REQUIRE(found.schedule);
        REQUIRE(found.first);
        REQUIRE(found.history.size() > 1);
        CHECK(found.history.front().rounds == 0);
        CHECK(found.history.front().best == found.first->makespan);
        CHECK(replay(problem, found.first->schedule).makespan == found.first->makespan);
        CHECK(found.history.front().found_by == found.first->strategy);
        for (std::size_t i = 1; i < found.history.size(); ++i) {
            const Improvement &before = found.history[i - 1], &now = found.history[i];
            CHECK(now.rounds > before.rounds);
            CHECK((now.best < before.best || now.bound > before.bound));
            CHECK(now.best <= before.best);
            CHECK(now.bound >= before.bound);
        }
        CHECK(found.history.back().best == found.replay.makespan);
        CHECK(found.history.back().bound == found.bound);
    }
}
