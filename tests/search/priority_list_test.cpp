#include "search/construct/priority_list.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

TEST_CASE("looking ahead, nothing long is begun when something urgent is about to arrive") {
    // Rank 0: 0, long and ready; 2, short, after 1 on rank 1.
    Problem problem;
    problem.name = "urgent";
    problem.ranks.resize(2);
    problem.tasks = {task_of(0, TaskKind::forward, 4, 0), task_of(1, TaskKind::forward, 1, 1),
                     task_of(0, TaskKind::forward, 1, 1)};
    problem.edges = {edge_of(1, 2)};
    const Replayer replayer(problem);
    const Flat flat(replayer);
    PriorityList list(flat);
    REQUIRE_FALSE(list.prepare(flat.costs({})));
    const auto rows = [&](bool look_ahead) {
        list.run({.position = {2, 1, 0}, .look_ahead = look_ahead, .window = 0});
        return picture(problem, as_schedule(flat, list.sequence(), {}));
    };
    CHECK(rows(false) == std::vector<std::string>{"F0 F0 F0 F0 F1", "F1"});
    CHECK(rows(true) == std::vector<std::string>{".. F1 F0 F0 F0 F0", "F1"});
}

TEST_CASE("with a window of one, a microbatch begins when the one before it has ended on all ranks") {
    const auto problem = chains(2, 2);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    PriorityList list(flat);
    REQUIRE_FALSE(list.prepare(flat.costs({})));
    const auto rows = [&](std::uint32_t window) {
        list.run({.position = flat.place, .look_ahead = false, .window = window});
        return picture(problem, as_schedule(flat, list.sequence(), {}));
    };
    CHECK(rows(0) == std::vector<std::string>{"F0 F1 .. B0 .. B1", ".. F0 B0 F1 B1"});
    CHECK(rows(1) == std::vector<std::string>{"F0 .. .. B0 F1 .. .. B1", ".. F0 B0 .. .. F1 B1"});
    CHECK(rows(2) == rows(0));
}
