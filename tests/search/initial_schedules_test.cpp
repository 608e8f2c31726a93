#include "search/improve/initial_schedules.hpp"

#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"
#include "search/improve/engine.hpp"
#include "tests/search/by_hand.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

testing::Cases some() { return testing::cases(20, 5); }

std::vector<Problem> some_problems() {
    std::vector<Problem> all;
    for (std::uint64_t n = 0; n < some().count; ++n) all.push_back(random_problem(three_ranks_in_turn(n), n));
    return all;
}

}  // namespace

TEST_CASE("initial schedules are the same, however few are taken at a time") {
    for (const Problem& problem : some_problems()) {
        const Replayer replayer(problem);
        const Flat flat(replayer);
        InitialSchedules at_once(flat, {}), in_turn(flat, {});
        const auto all = at_once.next(1'000'000, in_order);
        CHECK(at_once.done());
        std::size_t count = 0;
        while (!in_turn.done())
            for (const InitialSchedule& one : in_turn.next(1, in_order)) {
                REQUIRE(count < all.size());
                CHECK(one.name == all[count].name);
                CHECK(one.candidate.sequence == all[count].candidate.sequence);
                ++count;
            }
        CHECK(count == all.size());
    }
}

TEST_CASE("a schedule that a caller gave comes first and is called a start") {
    const auto problem = chains(2, 3);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const auto policy = apply_policy("gpipe", replayer);
    REQUIRE(policy.schedule);
    InitialSchedules with(flat, {*policy.schedule}), without(flat, {});
    const auto all = with.next(1'000'000, in_order), others = without.next(1'000'000, in_order);
    REQUIRE(all.size() == others.size() + 1);
    CHECK(all.front().name == "start");
    CHECK(all.front().candidate.valid());
    for (std::size_t i = 0; i < others.size(); ++i) CHECK(all[i + 1].name == others[i].name);
}

TEST_CASE("a search that begins with few schedules has tried all of them after some rounds") {
    std::uint64_t later = 0;
    for (const Problem& problem : some_problems()) {
        const Replayer replayer(problem);
        const Flat flat(replayer);
        EngineTuning few;
        few.first_starts_work = few.starts_work = 1;
        Engine whole(flat, 1, 0), parts(flat, 1, 0, few);
        const bool none = whole.start({}, false, in_order).has_value();
        CHECK(parts.start({}, false, in_order).has_value() == none);
        if (none) continue;
        CHECK_FALSE(whole.starting());
        const auto first = parts.best().energy;
        while (parts.starting()) parts.round(in_order);
        CHECK(parts.rounds() > 0);
        CHECK(parts.best().energy == whole.best().energy);
        CHECK(parts.evaluations() == whole.evaluations());
        later += better(parts.best().energy, first);
        // From here on both do the same.
        for (int round = 0; round < 3; ++round) {
            whole.round(in_order);
            parts.round(in_order);
        }
        CHECK(parts.best().sequence == whole.best().sequence);
    }
    CHECK(later > some().share(5));
}

TEST_CASE("a search that is given what all policies make of a problem finds what it finds when it tries them itself") {
    std::uint64_t found_any = 0;
    for (const Problem& problem : some_problems()) {
        const Replayer replayer(problem);
        Options options;
        options.max_rounds = 3;
        for (const Policy& policy : policies()) {
            auto result = apply_policy(policy.name, replayer);
            if (result.schedule) options.starts.push_back(std::move(*result.schedule));
        }
        const Found tried = solve(replayer, options, in_order, {});
        options.starts_have_policies = true;
        const Found given = solve(replayer, options, in_order, {});
        CHECK(given.schedule == tried.schedule);
        CHECK(given.evaluations == tried.evaluations);
        CHECK(given.rounds == tried.rounds);
        found_any += given.schedule && !options.starts.empty();
    }
    CHECK(found_any > some().share(10));
}

namespace {

constexpr std::uint32_t microbatches = 5'100;  // two tasks each: more than initial schedules are tried of at once
constexpr std::int64_t lag = 5'000;

// From rank 0 to rank 1, all but the first with a long way to go: what a rank's work proves goes by the first, the
// bound of one machine knows that the others come late.
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

TEST_CASE("a large problem has a good schedule first, bounds that take long when all initial ones were tried" *
          testing::on_release_libraries()) {
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
