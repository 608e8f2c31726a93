#include "service/watch/lateness.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::service;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint begin{1h};

// A step with 500 ms, planned in time: by policy after 10 ms, searched from 20 ms on until 50 ms before its deadline,
// put together in 10 ms, stored in 10 ms.
Course in_time() {
    Course course;
    course.submitted = begin;
    course.policy = begin + 5ms;
    course.drafted = begin + 10ms;
    course.turn = begin + 20ms;
    course.found = begin + 450ms;
    course.made = begin + 460ms;
    course.settled = begin + 470ms;
    course.deadline = begin + 500ms;
    course.reserve = 50ms;
    course.searched = true;
    return course;
}

// From its turn on all comes later.
Course turn_at(Duration turn) {
    Course course = in_time();
    course.turn = begin + turn;
    course.found = course.turn + 1ms;
    course.made = course.found + 10ms;
    course.settled = course.made + 10ms;
    course.searched = false;
    return course;
}

}  // namespace

TEST_CASE("what is in time has no reason, to the nanosecond") {
    CHECK(why_late(in_time()).empty());
    Course just = in_time();
    just.settled = just.deadline;
    CHECK(why_late(just).empty());
    just.settled += 1ns;
    CHECK_FALSE(why_late(just).empty());
}

TEST_CASE("a step that was submitted with less time than a plan by policy takes") {
    Course course = turn_at(10ms);
    course.deadline = begin + 1ms;
    // 5 ms for the plan, 1 ms to take it, 20 ms to put it together and to store it; that it waited is not counted.
    CHECK(why_late(course) == "submitted with less time (1.0 ms) than a plan by policy takes (26 ms)");
}

TEST_CASE("a collect that wanted a plan sooner than it can be put together") {
    Course course = in_time();
    course.moved = begin + 445ms;
    course.deadline = begin + 465ms;
    CHECK(why_late(course) == "a collect wanted it in 20 ms, less than the 50 ms reserved to put a plan together");
    course = turn_at(490ms);
    course.moved = begin + 100ms;  // in good time: that was not why
    CHECK(why_late(course).starts_with("no turn"));
}

TEST_CASE("a plan by policy that had to wait for a thread until its deadline was over") {
    Course course = turn_at(530ms);
    course.policy = begin + 520ms;
    course.drafted = begin + 525ms;
    CHECK(why_late(course) == "its plan by policy took 5.0 ms, after it had waited 520 ms for a thread");
}

TEST_CASE("a step that had no turn before its deadline says how many went first") {
    Course course = turn_at(490ms);
    CHECK(why_late(course) == "no turn before its deadline: no thread was free");
    course = turn_at(890ms);
    course.settled += 140ms;  // to store it took longer than reserved, too, but that made less of it
    CHECK(why_late(course) == "no turn before its deadline: no thread was free");
    course.before = 1;
    CHECK(why_late(course) == "no turn before its deadline: a step due earlier or of a higher priority went first");
    course.before = 7;
    CHECK(why_late(course) == "no turn before its deadline: 7 steps due earlier or of a higher priority went first");
}

TEST_CASE("a search that did not end when it was told to") {
    Course course = in_time();
    course.found = begin + 1650ms;
    course.made = begin + 1660ms;
    course.settled = begin + 1670ms;
    CHECK(why_late(course) == "its search ended 1.2 s after it was told to");
    // Putting it together took no longer than reserved: it was not that.
    course.found = begin + 490ms;
    course.made = begin + 520ms;
    course.settled = begin + 530ms;
    CHECK(why_late(course) == "its search ended 40 ms after it was told to");
    course.searched = false;  // nor was its plan by policy, which it took since the search found no better one
    CHECK(why_late(course) == "its search ended 40 ms after it was told to");
    course.has_draft = false;
    CHECK(why_late(course) == "no policy's plan fits: the search had its first one 40 ms after it was told to end");
}

TEST_CASE("a plan that took longer to put together or to store than was reserved") {
    Course course = in_time();
    course.made = begin + 530ms;
    course.settled = begin + 540ms;
    CHECK(why_late(course) == "the plan took 90 ms to put together and to store, 50 ms were reserved");
    course.made = begin + 460ms;
    CHECK(why_late(course) == "the plan took 80 ms to store, 50 ms were reserved");
    course.stored = false;
    CHECK(why_late(course) == "not stored: the disk took 80 ms to refuse the plan, 50 ms were reserved");
    course.turn = course.found = begin + 455ms;  // its turn came late, but by less
    CHECK(why_late(course).starts_with("not stored"));
}
