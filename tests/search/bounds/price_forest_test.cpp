#include "search/bounds/price_forest.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

TEST_CASE("tasks of other ranks count as delays, and memory as a fraction of the rank's room") {
    auto problem = chains(2, 1, 3, 5);
    problem.ranks[0].capacity = Bytes{4};
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const auto forest = price_forest(flat, tightened(flat), std::array<std::uint32_t, 1>{0});
    REQUIRE(forest.trees() == 1);
    REQUIRE(forest.nodes.size() == 2);
    const auto &forward = forest.nodes[0], &backward = forest.nodes[1];
    CHECK(forward.task == 0);
    CHECK(forward.path == 16);
    CHECK(forward.acquire == 0.25);
    CHECK(backward.task == 3);
    CHECK(backward.head == 11);  // over both passes on rank 1
    CHECK(backward.release == 0.25);
    CHECK(backward.parent == 0);
    CHECK(backward.after);
    CHECK(backward.slack == 0);
}

TEST_CASE("microbatches that nothing joins are trees of their own") {
    const auto problem = chains(2, 3);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const auto forest = price_forest(flat, tightened(flat), std::array<std::uint32_t, 2>{0, 1});
    CHECK(forest.trees() == 3);
    CHECK(forest.nodes.size() == 12);
}
