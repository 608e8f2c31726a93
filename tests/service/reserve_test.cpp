#include "service/reserve.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using service::Reserve;
using namespace std::chrono_literals;

TEST_CASE("a search that took longer leaves the next ones more time, and it is forgotten slowly") {
    Reserve reserve(40ms);
    CHECK(reserve.of(1h) == 40ms);
    reserve.learn(100ms);
    CHECK(reserve.of(1h) == 155ms);
    reserve.learn(10ms);
    CHECK(reserve.of(1h) < 155ms);
    CHECK(reserve.of(1h) > 154ms);
    for (int step = 0; step < 2000; ++step) reserve.learn(10ms);
    CHECK(reserve.of(1h) == 20ms);
}

TEST_CASE("the first steps reserve what a search was seen to end too late, later ones what they teach") {
    Reserve reserve(40ms, 90ms);
    CHECK(reserve.of(1h) == 90ms);
    CHECK(reserve.of(100ms) == 50ms);
    for (int step = 0; step < 2000; ++step) reserve.learn(10ms);
    CHECK(reserve.of(1h) == 20ms);
}

TEST_CASE("steps that were not searched let what was learned sink, not what was measured") {
    Reserve reserve(40ms);
    reserve.learn(1s);
    for (int step = 0; step < 5000; ++step) reserve.learn(std::nullopt);
    CHECK(reserve.of(1h) == 40ms);
}

TEST_CASE("what was learned leaves a step half of its time, what was measured stays") {
    Reserve reserve(40ms);
    reserve.learn(10s);
    CHECK(reserve.of(1s) == 500ms);
    CHECK(reserve.of(60ms) == 40ms);
    CHECK(reserve.of(1h) > 10s);
}
