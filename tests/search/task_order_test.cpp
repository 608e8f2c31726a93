#include "search/instance/task_order.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

using Tasks = std::vector<std::uint32_t>;

// Two microbatches one after the other: rank 0 runs 0 3 4 7, rank 1 runs 1 2 5 6.
struct OneByOne {
    OneByOne() { order.load(Tasks{0, 1, 2, 3, 4, 5, 6, 7}); }

    Tasks row(std::uint32_t rank) const {
        Tasks tasks;
        for (std::uint32_t k = order.row_begin(rank); k < order.row_end(rank); ++k) tasks.push_back(order.at(k));
        return tasks;
    }

    const Problem problem = chains(2, 2);
    const Replayer replayer{problem};
    const Flat flat{replayer};
    TaskOrder order{flat};
};

}  // namespace

TEST_CASE("a task moved before another changes its rank's order and the window of the sequence between them") {
    OneByOne it;
    REQUIRE(it.order.move_before(4, 3));
    CHECK(it.order.sequence() == Tasks{0, 1, 2, 4, 3, 5, 6, 7});
    CHECK(it.row(0) == Tasks{0, 4, 3, 7});
    CHECK(it.row(1) == Tasks{1, 2, 5, 6});
    CHECK(it.order.window_first() == 3);
    CHECK(it.order.window_last() == 4);
    CHECK(it.order.previous(3) == 4);
    CHECK(it.order.next(3) == 7);
}

TEST_CASE("moving one task before another is moving the other after it") {
    OneByOne one, other;
    REQUIRE(one.order.move_before(4, 3));
    REQUIRE(other.order.move_after(3, 4));
    CHECK(one.order.sequence() == other.order.sequence());
    CHECK(one.row(0) == other.row(0));
}

TEST_CASE("what a moved task waits for goes along") {
    OneByOne it;
    REQUIRE(it.order.move_before(4, 3));
    REQUIRE(it.order.move_before(5, 2));  // on rank 1; it waits for 4, which is in the window
    CHECK(it.order.sequence() == Tasks{0, 1, 4, 5, 2, 3, 6, 7});
}

TEST_CASE("a move that would close a cycle is refused and changes nothing") {
    OneByOne it;
    CHECK_FALSE(it.order.move_before(7, 3));  // past 4, which it waits for
    CHECK(it.order.sequence() == Tasks{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(it.row(0) == Tasks{0, 3, 4, 7});
}

TEST_CASE("a move is taken back") {
    OneByOne it;
    REQUIRE(it.order.move_after(3, 4));
    it.order.take_back();
    CHECK(it.order.sequence() == Tasks{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(it.row(0) == Tasks{0, 3, 4, 7});
    CHECK(it.order.place(3) == 3);
}
