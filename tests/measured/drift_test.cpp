// Drift of a run from its plan: whose factors are which, and what is told when.
#include "pipeweaver/measured/drift.hpp"

#include "pipeweaver/base/error.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::measured;

namespace {

// Three ranks of llm, the first with the vit beside it. Rank 1 takes `slow` times what is planned, the vit `vit` times.
RankGroups drifting(double slow, double vit) {
    RankGroups step;
    for (const std::int64_t rank : {0, 1, 2}) {
        const double own = rank == 1 ? slow : 1.0;
        step[rank][{"llm", "F"}] = {100, 100 * own};
        step[rank][{"llm", "B"}] = {200, 200 * own};
    }
    step[0][{"vit", "F"}] = {50, 50 * vit};
    return step;
}

std::string told(Drift& drift, double slow, double vit) {
    std::string text;
    for (const DriftFinding& one : drift.add(drifting(slow, vit)))
        text += (one.rank ? "rank " + std::to_string(*one.rank) : one.modules) + " " +
                std::to_string(std::llround(1000 * one.factor)) + " over " + std::to_string(one.steps) + "; ";
    return text;
}

}  // namespace

TEST_CASE("a rank's factor is over the lower middle of its peers, and a rank without peers has none") {
    RankGroups ran = drifting(1.5, 3);
    ran[3][{"audio", "F"}] = {100, 400};
    ran[2][{"llm", "W"}] = {0, 7};  // nothing was planned
    ran[1][{"llm", "W"}] = {0, 7};
    const auto factors = beside_peers(ran);
    REQUIRE(factors.size() == 3);
    CHECK(factors.at(0) == doctest::Approx(1));
    CHECK(factors.at(1) == doctest::Approx(1.5));
    CHECK(factors.at(2) == doctest::Approx(1));
    // Of two the faster is what is usual.
    CHECK(beside_peers({{0, {{{"llm", "F"}, {100, 100}}}}, {1, {{{"llm", "F"}, {100, 120}}}}}).at(1) ==
          doctest::Approx(1.2));
}

TEST_CASE("a slow rank is told once, is not taken for its modules, and is told again when it is slow anew") {
    Drift drift;
    CHECK(told(drift, 1.2, 1).empty());  // one step says nothing
    CHECK(told(drift, 1.2, 1) == "rank 1 1200 over 2; ");
    CHECK(told(drift, 1.2, 1).empty());
    for (int step = 0; step < 5; ++step) static_cast<void>(told(drift, 1, 1));
    CHECK(told(drift, 1, 1).empty());
    std::string again;
    for (int step = 0; step < 5; ++step) again += told(drift, 1.2, 1);
    CHECK(again.find("rank 1") != std::string::npos);
}

TEST_CASE("modules that take longer or shorter than planned are told, and again when that has changed much") {
    Drift drift;
    static_cast<void>(told(drift, 1, 1.3));
    CHECK(told(drift, 1, 1.3) == "vit 1300 over 2; ");
    CHECK(told(drift, 1, 1.32).empty());
    drift.forget();
    static_cast<void>(told(drift, 1, 0.8));
    CHECK(told(drift, 1, 0.8) == "vit 800 over 2; ");
}

TEST_CASE("the window is of the last steps, and noise that the steps have themselves raises the limit") {
    Drift drift({.window = 2});
    static_cast<void>(told(drift, 1, 2));
    CHECK(told(drift, 1, 2) == "vit 2000 over 2; ");
    CHECK(told(drift, 1, 1).empty());  // mean 1.5, deviation 0.7
    CHECK(told(drift, 1, 1).empty());
    CHECK(told(drift, 1, 2).empty());
    CHECK(told(drift, 1, 2) == "vit 2000 over 2; ");
}

TEST_CASE("limits that cannot be are refused") {
    const char* why = "noise, least and strictness are above 0, window is 2 or more";
    CHECK_THROWS_WITH_AS(Drift({.noise = 0}), why, Error);
    CHECK_THROWS_WITH_AS(Drift({.window = 1}), why, Error);
    CHECK_THROWS_WITH_AS(Drift({.least = -1}), why, Error);
    CHECK_THROWS_WITH_AS(Drift({.strictness = 0}), why, Error);
}
