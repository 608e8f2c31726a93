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

}  // namespace

TEST_CASE("search over groups' priorities finds the order of two jobs on two ranks") {
    const auto problem = two_jobs();
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const TaskGroups groups(flat);
    REQUIRE(groups.tasks.size() == 2);  // the forwards of a microbatch, on both ranks
    GroupSearch search(flat, groups);
    REQUIRE_FALSE(search.prepare(flat.costs({})));
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
    REQUIRE_FALSE(search.prepare(flat.costs({})));
    search.start(Choice::list, std::vector<std::uint32_t>{2, 3, 0, 1});
    std::int64_t before = INT64_MAX;
    for (std::uint64_t k = 0; k < 50; ++k) {
        Random random(2, k);
        const std::int64_t made = search.step(random);
        CHECK(search.makespan() == std::min(before, made));
        before = search.makespan();
    }
}
