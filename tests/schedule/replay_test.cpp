#include "pipeweaver/schedule/replay.hpp"

#include "pipeweaver/base/error.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace std::chrono_literals;

namespace {

constexpr RankId rank0{0}, rank1{1};
constexpr TaskId forward0{0}, forward1{1}, backward1{2}, backward0{3};

// rank 0: F 10 us -> (lag 2 us) rank 1: F 20 us, B 40 us -> (lag 2 us) rank 0: B 20 us
Problem two_rank_problem() {
    Problem problem;
    problem.name = "two";
    problem.ranks = {{20_B, 5_B, 1us}, {20_B, 5_B, 0us}};
    problem.tasks = {{rank0, TaskKind::forward, 10us, 8_B, 0_B, "F0", 0, 0, 0, "m"},
                     {rank1, TaskKind::forward, 20us, 8_B, 0_B, "F1", 1, 0, 0, "m"},
                     {rank1, TaskKind::backward, 40us, 2_B, 10_B, "B1", 1, 0, 0, "m"},
                     {rank0, TaskKind::backward, 20us, 2_B, 10_B, "B0", 0, 0, 0, "m"}};
    problem.edges = {{forward0, forward1, 2us}, {forward1, backward1, 0us}, {backward1, backward0, 2us}};
    return problem;
}

}  // namespace

TEST_CASE("a chain takes the sum of its tasks, lags and the last rank's tail") {
    const auto result = replay(two_rank_problem(), {{{forward0, backward0}, {forward1, backward1}}, {}});

    CHECK(result.outcome == Outcome::completed);
    CHECK(result.makespan == 10us + 2us + 20us + 40us + 2us + 20us + 1us);
    CHECK(result.start[index(backward0)] == 74us);
    CHECK(result.peak == std::vector{15_B, 15_B});
}

TEST_CASE("a schedule that does not fit is an answer, and names the task and the bytes") {
    auto problem = two_rank_problem();
    problem.ranks[1].capacity = 14_B;

    const auto result = replay(problem, {{{forward0, backward0}, {forward1, backward1}}, {}});

    CHECK(result.outcome == Outcome::out_of_memory);
    CHECK(result.stuck_at == backward1);
    CHECK(result.short_by == 1_B);
    CHECK(why_it_fails(problem, result) == "rank 1: task 2 'B1' does not fit: 1 B short");
    CHECK(result.peak == std::vector{15_B, 15_B});
}

TEST_CASE("an order against the edges is a deadlock") {
    auto problem = two_rank_problem();
    for (auto& rank : problem.ranks) rank.capacity.reset();
    problem.tasks[0].acquire = problem.tasks[3].release = 0_B;

    const auto result = replay(problem, {{{backward0, forward0}, {forward1, backward1}}, {}});

    CHECK(result.outcome == Outcome::deadlock);
    CHECK(result.stuck_at == backward0);
    CHECK(why_it_fails(problem, result) == "deadlock: rank 0: task 3 'B0' waits for ever under this order");
}

TEST_CASE("giving back what was never taken is an underflow") {
    const auto result = replay(two_rank_problem(), {{{backward0, forward0}, {forward1, backward1}}, {}});

    CHECK(result.outcome == Outcome::underflow);
    CHECK(result.stuck_at == backward0);
    CHECK(result.short_by == 8_B);
    CHECK(why_it_fails(two_rank_problem(), result) == "rank 0: task 3 'B0' gives back 8 bytes more than were taken");
}

TEST_CASE("a problem's fingerprint is the SHA-256 of its own file, read again") {
    auto problem = two_rank_problem();
    problem.name = "t\"wo\" \xc3\xa9";
    problem.stages = {{0, rank0, {{"m", 0, 4}, {"n", {}, {}}}}, {1, rank1, {{"m", 4, 4}}}};
    problem.tasks[1].microbatch.reset();
    problem.tasks[2].module.clear();
    problem.ranks[0].capacity.reset();
    problem.pairs = {
        {forward0, backward0, {}, {{10us, 20us, 0us, 8_B, 0_B, 2_B, 0_B}, {11us, 29us, 0us, 1_B, 7_B, 9_B, 0_B}}}};
    for (const bool split : {false, true}) {
        if (split) {
            problem.tasks.push_back({rank0, TaskKind::weight_gradient, 5us, 0_B, 3_B, "W0", 0, 0, 0, "m"});
            problem.tasks[3].release = 7_B;
            problem.edges.push_back({backward0, TaskId{4}, 0us});
            problem.pairs = {{forward0, backward0, TaskId{4}, {{10us, 20us, 5us, 8_B, 0_B, 2_B, 3_B}}}};
        }
        CHECK(fingerprint(problem) == parse_problem("two", to_json(problem)).sha256);
    }
    // No pass of a mode takes no time.
    const std::string text = to_json(problem);
    for (const char* time : {"\"forward_ns\":10000", "\"backward_ns\":20000", "\"weight_ns\":5000"}) {
        CAPTURE(time);
        std::string none = text;
        const std::size_t place = none.find(time);
        REQUIRE(place != std::string::npos);
        none.replace(none.find(':', place) + 1, std::string(time).size() - std::string(time).find(':') - 1, "0");
        const std::string key = std::string(time).substr(1, std::string(time).find(':') - 2);
        CHECK_THROWS_WITH_AS(static_cast<void>(parse_problem("two", none)),
                             doctest::Contains(("pairs[0].modes[0]." + key + ": is 0, must be").c_str()), Error);
    }
}

TEST_CASE("a pair's mode replaces times and memory of its tasks") {
    auto problem = two_rank_problem();
    problem.pairs = {
        {forward0, backward0, {}, {{10us, 20us, 0us, 8_B, 0_B, 2_B, 0_B}, {11us, 29us, 0us, 1_B, 7_B, 9_B, 0_B}}}};
    validate(problem);

    const auto result = replay(problem, {{{forward0, backward0}, {forward1, backward1}}, {1}});

    CHECK(result.makespan == 11us + 2us + 60us + 2us + 29us + 1us);
    CHECK(result.peak == std::vector{15_B, 15_B});  // 5 + 1 + 9 at the backward
}

TEST_CASE("a task fits where its most frugal mode does, a backward beside what its forward has left") {
    // On rank 0, of base 5: forward 8 or 1 + 4, backward 8 + 2 or 1 + 5.
    auto problem = two_rank_problem();
    problem.pairs = {
        {forward0, backward0, {}, {{10us, 20us, 0us, 8_B, 0_B, 2_B, 0_B}, {11us, 29us, 0us, 1_B, 4_B, 5_B, 0_B}}}};
    problem.ranks[0].capacity = 11_B;
    CHECK(!check(problem));
    problem.ranks[0].capacity = 10_B;
    const auto backward = check(problem);
    REQUIRE(backward);
    CHECK(backward->task == backward0);
    CHECK(backward->rank == rank0);
    CHECK(backward->needed == 6_B);
    problem.ranks[0].capacity = 9_B;
    REQUIRE(check(problem));
    CHECK(check(problem)->task == forward0);
    CHECK(check(problem)->needed == 5_B);
}

TEST_CASE("a problem is checked once, and each fault is named") {
    const auto refuses = [](auto change, const char* message) {
        auto problem = two_rank_problem();
        change(problem);
        CHECK_THROWS_WITH_AS(validate(problem), message, Error);
    };
    refuses(
        [](Problem& p) {
            p.edges.push_back({backward0, forward0, 0us});
        },
        "edges: 4 tasks wait for each other in a cycle: 0 'F0' -> 1 'F1' -> 2 'B1' -> 3 'B0'");
    refuses(
        [](Problem& p) {
            p.edges.push_back({forward0, TaskId{9}, 0us});
        },
        "edges[3]: there is no task 9, the last is 3");
    refuses([](Problem& p) { p.tasks[1].duration = 0us; }, "tasks[1].duration_ns: is 0, must be a whole number from 1");
    refuses([](Problem& p) { p.tasks[1].rank = RankId{2}; }, "tasks[1].rank: there is no rank 2, the last is 1");
    refuses([](Problem& p) { p.ranks[0].capacity = 4_B; },
            "ranks[0]: base_bytes 5 exceeds capacity_bytes 4: 1 bytes short");
    refuses([](Problem& p) { p.ranks[1].capacity = 12_B; },
            "tasks[1]: 'F1' does not fit rank 1 even alone: 1 bytes short (13 B of 12 B)");
    refuses([](Problem& p) { p.tasks[0].duration = p.tasks[1].duration = Duration::max(); },
            "the sum of all durations, lags and tails exceeds 9223372036854775807");
    refuses(
        [](Problem& p) {
            p.pairs = {{forward0, backward1, {}, {Mode{}}}};
        },
        "pairs[0]: its tasks are on different ranks");
}
