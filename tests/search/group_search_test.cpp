#include "search/improve/group_search.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// Two jobs over two ranks, 5 then 1 and 1 then 5: by S. M. Johnson's rule the second goes first.
Problem two_jobs() {
    Problem problem;
    problem.name = "jobs";
    problem.ranks.resize(2);
    problem.tasks = {task_of(0, TaskKind::forward, 5, 0), task_of(1, TaskKind::forward, 1, 0),
                     task_of(0, TaskKind::forward, 1, 1), task_of(1, TaskKind::forward, 5, 1)};
    problem.edges = {edge_of(0, 1), edge_of(2, 3)};
    return problem;
}

// Two microbatches over two ranks with 5 bytes each. Whole a pass holds 4 bytes and its backward takes 2, recomputed 1
// byte and 3.
Problem two_microbatches() {
    auto problem = chains(2, 2);
    for (auto& rank : problem.ranks) rank.capacity = Bytes{5};
    Mode whole, again;
    whole.held = Bytes{4};
    whole.forward = Duration{1};
    whole.backward = Duration{2};
    again = whole;
    again.held = Bytes{1};
    again.backward = Duration{3};
    problem.pairs.clear();
    for (const std::uint32_t forward : {0U, 1U, 4U, 5U}) {
        const std::uint32_t backward = forward / 4 * 4 + 3 - forward % 4;
        problem.pairs.push_back({TaskId{forward}, TaskId{backward}, {}, {whole, again}});
        const auto costs = costs_in(problem.pairs.back(), whole);
        apply(problem.tasks[forward], costs[0]);
        apply(problem.tasks[backward], costs[1]);
    }
    validate(problem);
    return problem;
}

}  // namespace

TEST_CASE("search over groups' priorities finds the order of two jobs on two ranks") {
    const auto problem = two_jobs();
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const TaskGroups groups(flat);
    REQUIRE(groups.tasks.size() == 2);  // the forwards of a microbatch, on both ranks
    GroupSearch search(flat, groups);
    REQUIRE_FALSE(search.prepare({}));
    search.start(Choice::list, flat.place);
    CHECK(search.evaluate() == 11);
    for (std::uint64_t k = 0; k < 100; ++k) {
        Random random(1, k);
        search.step(random);
    }
    CHECK(search.makespan() == 7);
    CHECK(search.evaluate() == 7);
    CHECK(search.sequence().front() == 2);
}

TEST_CASE("a change of priorities that makes the schedule longer is not kept") {
    const auto problem = two_jobs();
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const TaskGroups groups(flat);
    GroupSearch search(flat, groups);
    REQUIRE_FALSE(search.prepare({}));
    search.start(Choice::list, std::vector<std::uint32_t>{2, 3, 0, 1});
    std::int64_t before = INT64_MAX;
    for (std::uint64_t k = 0; k < 50; ++k) {
        Random random(2, k);
        const std::int64_t made = search.step(random);
        CHECK(search.makespan() == std::min(before, made));
        before = search.makespan();
    }
}

TEST_CASE("a microbatch that is recomputed on all ranks lets another one begin, if that makes the step shorter") {
    const auto problem = two_microbatches();
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const TaskGroups groups(flat);
    GroupSearch search(flat, groups);
    REQUIRE_FALSE(search.prepare(std::vector<std::uint32_t>{0, 0, 0, 0}));
    search.start(Choice::list, flat.place);
    CHECK(search.evaluate() == 12);  // one after the other
    for (std::uint64_t k = 0; k < 100; ++k) {
        Random random(1, k);
        const std::int64_t made = search.step(random);
        const auto replay = replayer.replay(as_schedule(flat, search.sequence(), search.mode()));
        CHECK(replay.outcome == Outcome::completed);
        CHECK(replay.makespan.count() == made);
    }
    CHECK(search.makespan() == 10);  // on rank 0 |F0 F1 .. .. .. B0 B0 B0 B1 B1|
    CHECK(search.evaluate() == 10);
    using Modes = std::vector<std::uint32_t>;
    const bool one_recomputed = search.mode() == Modes{1, 1, 0, 0} || search.mode() == Modes{0, 0, 1, 1};
    CHECK(one_recomputed);
}

TEST_CASE("modes that leave no safe order change nothing of where a search stands") {
    auto problem = two_microbatches();
    for (auto& rank : problem.ranks) rank.capacity = Bytes{3};
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const TaskGroups groups(flat);
    GroupSearch search(flat, groups);
    REQUIRE_FALSE(search.prepare(std::vector<std::uint32_t>{1, 1, 1, 1}));
    search.start(Choice::list, flat.place);
    const std::int64_t before = search.evaluate();
    CHECK_FALSE(search.start(Choice::backward_first, flat.place, std::vector<std::uint32_t>{0, 1, 1, 1}));
    CHECK(search.point().choice == Choice::list);
    CHECK(search.evaluate() == before);
    int none = 0;
    for (std::uint64_t k = 0; k < 50; ++k) {
        Random random(3, k);
        none += search.step(random) == INT64_MAX ? 1 : 0;
        CHECK(search.mode() == std::vector<std::uint32_t>{1, 1, 1, 1});
    }
    CHECK(none > 0);
    CHECK(search.makespan() <= before);
}
