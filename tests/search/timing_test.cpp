#include "search/instance/timing.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// Two microbatches one after the other, each task 1 ns:      rank 0  |F0 .. .. B0 F1 .. .. B1|
//                                                            rank 1  |.. F0 B0 .. .. F1 B1 ..|
struct OneByOne {
    OneByOne() {
        order.load(std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
        timing.load(order, flat.costs({}));
        timing.begin_step(order);
    }

    // F1 before B0 on rank 0: |F0 F1 .. B0 .. B1|, |.. F0 B0 F1 B1 ..|
    bool step(std::int64_t limit) {
        const bool moved = order.move_before(4, 3);
        const TaskOrder::Move& move = order.last_move();
        for (const std::uint32_t task : {move.task, move.next, order.next(move.task)}) timing.touch(order, task);
        return moved && timing.spread(order, {.last = order.window_last()}, limit);
    }

    const Problem problem = chains(2, 2);
    const Replayer replayer{problem};
    const Flat flat{replayer};
    TaskOrder order{flat};
    Timing timing{flat, 0};
};

}  // namespace

TEST_CASE("a task's end and its tail are the longest paths to it and from it under the ranks' orders") {
    const OneByOne it;
    CHECK(it.timing.energy().makespan == 8);
    CHECK(it.timing.energy().ends == 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8);
    for (std::uint32_t task = 0; task < 8; ++task) {
        CHECK(it.timing.end(task) == task + 1);
        CHECK(it.timing.tail(task) == 7 - task);
    }
}

TEST_CASE("a step changes the times that depend on it") {
    OneByOne it;
    REQUIRE(it.step(unlimited));
    CHECK(it.timing.energy().makespan == 6);
    CHECK(it.timing.energy().ends == 1 + 2 + 3 + 4 + 2 + 4 + 5 + 6);
    CHECK(it.timing.start(5) == 3);
    CHECK(it.timing.end(0) == 1);
}

TEST_CASE("a step beyond the limit is refused with the times of before") {
    OneByOne it;
    CHECK_FALSE(it.step(5));
    CHECK(it.timing.energy().makespan == 8);
    CHECK(it.timing.end(7) == 8);
}

TEST_CASE("a step that was taken back leaves the times of before") {
    OneByOne it;
    REQUIRE(it.step(unlimited));
    it.timing.take_back();
    CHECK(it.timing.energy().makespan == 8);
    CHECK(it.timing.end(5) == 6);
}
