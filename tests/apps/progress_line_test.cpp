#include "apps/progress_line.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace std::chrono_literals;
using apps::progress_line;

TEST_CASE("a line of progress says which of how many, and how the search goes") {
    CHECK(progress_line({"partition", 7, 29, {}}) == "partition 7/29");
    CHECK(progress_line({"cells", 7, 29, {}, std::chrono::seconds(12)}) == "cells 7/29, 12.00 s left");
    const search::Progress progress{40, 9'000, 3'910ms, 3'760ms, "annealing"};
    CHECK(progress_line({"replica", 2, 4, progress}) == "replica 2/4: 40 rounds, 3.910 s, gap 4.0 %");
    CHECK(progress_line({"search", 0, 0, progress}) == "search: 40 rounds, 3.910 s, gap 4.0 %");
}

TEST_CASE("a line of progress has no gap without a bound, and no makespan without a schedule") {
    CHECK(progress_line({"search", 0, 0, search::Progress{1, 1, 5ms, 0ms, "1f1b"}}) == "search: 1 round, 5.000 ms");
    CHECK(progress_line({"search", 0, 0, search::Progress{2, 9, 5ms, 4ms, ""}}) == "search: 2 rounds, no schedule yet");
    CHECK(progress_line({"search", 0, 0, search::Progress{}}) == "search: 0 rounds, no schedule yet");
}

TEST_CASE("a line of a plan says what is done of it and how long the rest takes") {
    CHECK(progress_line({"partition", 7, 29, {}, 3s, 0.4}) == "partition 7/29, 40 % done, 3.000 s left");
    apps::PlanShare share(Stopwatch{}, {});
    const auto early = share({planner::doing::known_schedules, 1, 40, {}});
    const auto later = share({planner::doing::partition, 10, 40, {}});
    const auto again = share({planner::doing::known_schedules, 2, 40, {}});
    CHECK(*early.share < *later.share);
    CHECK(*again.share == *later.share);
    CHECK((*early.share >= 0 && *later.share < 1));
    CHECK(!early.left);
    CHECK(later.left);
}

TEST_CASE("no more time is left than the budget has") {
    apps::PlanShare share(Stopwatch{}, 1s);
    const auto left = share({planner::doing::known_schedules, 1, 40, {}}).left;
    CHECK((left && *left <= 1s));
}
