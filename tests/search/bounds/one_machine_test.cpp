#include "search/bounds/one_machine.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

TEST_CASE("one machine needs the smallest head, all work and the smallest tail") {
    const std::vector<Job> jobs{{0, 2, 7}, {1, 3, 4}, {4, 1, 5}};
    CHECK(head_work_tail(jobs) == 0 + 6 + 4);
}

TEST_CASE("with preemption the job with the largest tail runs first, and its end is the bound") {
    // |AABBAA|: B, which arrives at 2, ends at 4 and has 8 to follow.
    CHECK(preemptive_makespan({{0, 4, 3}, {2, 2, 8}}) == 12);
    CHECK(preemptive_makespan({{0, 4, 3}, {2, 2, 1}}) == 7);  // |AAAABB|: B ends at 6
    CHECK(preemptive_makespan({}) == 0);
}

TEST_CASE("what must run before a task on one rank runs one after the other") {
    // 0 and 1 on rank 0, 5 ns each, both before 2 on rank 1: the longest path to it is 5, but it starts at 10.
    Problem problem;
    problem.name = "join";
    problem.ranks.resize(2);
    problem.tasks = {task_of(0, TaskKind::forward, 5, 0), task_of(0, TaskKind::forward, 5, 1),
                     task_of(1, TaskKind::forward, 1, 2)};
    problem.edges = {edge_of(0, 2), edge_of(1, 2)};
    const Replayer replayer(problem);
    const Flat flat(replayer);
    CHECK(flat.head[2] == 5);
    CHECK(tightened(flat).head[2] == 10);
    CHECK(tightened(flat).tail == flat.tail);
}
