#include "search/instance/candidate.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Schedule orders(const std::vector<std::vector<std::uint32_t>>& ranks) {
    Schedule schedule;
    for (const auto& tasks : ranks) {
        schedule.order.emplace_back();
        for (const std::uint32_t task : tasks) schedule.order.back().push_back(TaskId{task});
    }
    return schedule;
}

}  // namespace

TEST_CASE("the smaller makespan is better, then the smaller sum of ends, a schedule is better than none") {
    CHECK(better(Energy{5, 9}, Energy{6, 1}));
    CHECK(better(Energy{5, 8}, Energy{5, 9}));
    CHECK_FALSE(better(Energy{5, 9}, Energy{5, 9}));
    Candidate some;
    some.sequence = {0};
    CHECK(better(some, Candidate{}));
    CHECK_FALSE(better(Candidate{}, some));
}

TEST_CASE("a schedule becomes a sequence that keeps edges and orders") {
    const auto problem = chains(2, 2);
    const Replayer replayer(problem);
    const auto sequence = sequence_of(Flat(replayer), orders({{0, 4, 3, 7}, {1, 2, 5, 6}}));
    REQUIRE(sequence);
    std::vector<std::size_t> place(8);
    for (std::size_t k = 0; k < sequence->size(); ++k) place[(*sequence)[k]] = k;
    CHECK(place[4] < place[3]);
    for (const Edge& edge : problem.edges) CHECK(place[index(edge.from)] < place[index(edge.to)]);
}

TEST_CASE("orders that wait for each other have no sequence, nor have those that break a rule") {
    const auto problem = chains(2, 2);
    const Replayer replayer(problem);
    // Rank 0 wants the backward before the forward that rank 1 wants first.
    CHECK_FALSE(sequence_of(Flat(replayer), orders({{0, 3, 4, 7}, {5, 6, 1, 2}})));
    const Rules rules{{{}, {TaskId{5}, TaskId{1}}}};
    CHECK_FALSE(sequence_of(Flat(replayer, rules), orders({{0, 4, 3, 7}, {1, 2, 5, 6}})));
}
