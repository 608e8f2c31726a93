#include "search/instance/flat.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

using Numbers = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("heads and tails are the longest paths to a task and from it, the rank's tail included") {
    auto problem = chains(2, 1, 3, 5);
    problem.ranks[0].tail = Duration{2};
    const Replayer replayer(problem);
    const Flat flat(replayer);
    CHECK(flat.head == Numbers{0, 3, 6, 11});
    CHECK(flat.tail == Numbers{15, 12, 7, 2});
    CHECK(longest_makespan(flat) == 18);
}

TEST_CASE("two tasks joined twice are joined once, by the longest lag") {
    auto problem = chains(2, 1);
    problem.edges.push_back(edge_of(0, 1, 7));
    const Replayer replayer(problem);
    const Flat flat(replayer);
    REQUIRE(flat.before[1].size() == 1);
    CHECK(flat.before[1].front().lag_ns == 7);
    CHECK(flat.head[1] == 8);
}

TEST_CASE("an arc between tasks of one rank without lag is implied by the order there") {
    const auto problem = chains(2, 1);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    CHECK(flat.before[2].size() == 1);  // the backward on rank 1, after its forward
    CHECK(flat.cross_before[2].empty());
    CHECK(flat.cross_before[3].size() == 1);  // comes from rank 1
}

TEST_CASE("rules become arcs, and those that contradict the edges are refused") {
    const auto problem = chains(2, 2);
    const Replayer replayer(problem);
    const Flat flat(replayer, Rules{{{}, {TaskId{5}, TaskId{1}}}});
    CHECK(flat.head[1] == 2);  // after the other microbatch's forward on rank 1
    CHECK_THROWS_AS(Flat(replayer, Rules{{{}, {TaskId{2}, TaskId{1}}}}), Error);
}

TEST_CASE("the reversed problem exchanges heads and tails, and what is taken and given back") {
    const auto problem = chains(2, 1, 3, 5);
    const Replayer replayer(problem);
    const Flat flat(replayer), turned = reversed(flat);
    CHECK(turned.head == flat.tail);
    CHECK(turned.tail == flat.head);
    CHECK(turned.cost(0, 0).release == 1);
    CHECK(turned.topological.front() == 3);
}

TEST_CASE("times are multiples of what all durations, lags and tails are multiples of") {
    auto problem = chains(2, 1, 6, 10);
    const Replayer plain(problem);
    CHECK(time_unit(Flat(plain)) == 2);
    problem.edges.front().lag = Duration{3};
    const Replayer lagged(problem);
    CHECK(time_unit(Flat(lagged)) == 1);
    problem.edges.front().lag = Duration{4};
    problem.ranks.back().tail = Duration{7};
    const Replayer tailed(problem);
    CHECK(time_unit(Flat(tailed)) == 1);
}

TEST_CASE("microbatches that nothing joins are components of their own") {
    auto problem = chains(2, 2);
    const Replayer apart(problem);
    CHECK(components_of(Flat(apart)) == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1});
    problem.edges.push_back(edge_of(3, 4));
    const Replayer joined(problem);
    CHECK(components_of(Flat(joined)) == std::vector<std::uint32_t>(8, 0));
}
