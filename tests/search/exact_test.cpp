#include "search/exact.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

struct Proof {
    std::optional<Schedule> schedule;  // nothing: none fits
    std::int64_t makespan = 0;
    std::uint64_t nodes = 0;
};

// Searches from nothing: no heuristic tells it a makespan.
Proof prove(const Problem& problem, const Executor& execute = in_order, ExactLimits limits = {},
            const Rules& rules = {}) {
    const Replayer replayer(problem);
    const Flat flat(replayer, rules);
    Exact exact(flat, Exact::longest(flat) + 1, limits);
    Proof proof;
    while (exact.state() == Exact::State::working)
        if (const auto found = exact.round(execute))
            proof.schedule = as_schedule(flat, found->sequence, found->mode);
    CHECK(exact.state() == Exact::State::proven);
    proof.makespan = exact.makespan();
    proof.nodes = exact.nodes();
    return proof;
}

void check_against_force(const Problem& problem) {
    const auto best = best_by_force(problem);
    const Proof proof = prove(problem);
    REQUIRE(proof.schedule.has_value() == best.has_value());
    if (!best) return;
    CHECK(proof.makespan == best->count());
    const Replayer replayer(problem);
    const auto replay = replayer.replay(*proof.schedule);
    CHECK(replay.outcome == Outcome::completed);
    CHECK(replay.makespan == *best);
    for (const Bound& bound : lower_bounds(replayer)) CHECK(bound.value <= *best);
}

// 2 ranks with up to 5 tasks each, or 3 with up to 4; three kinds of twelve have modes, four are split, half are capped.
Shape shape_of(std::uint64_t n) {
    Shape shape{.ranks = 2, .microbatches = 2, .stages = 2};
    shape.modes = n % 4 == 0;
    shape.split = n % 3 == 0;
    shape.capped = n % 2 == 0 || n % 5 == 0;
    if (n % 7 == 0) shape = {.ranks = 3, .microbatches = 2, .stages = 3, .capped = shape.capped};
    if (shape.modes) shape.microbatches = shape.split ? 1 : 1 + n / 4 % 2;
    if (n % 11 == 0) {
        shape.items = true;
        shape.microbatches = 1;
    }
    return shape;
}

// Two more tasks of one rank, one of which gives back what the other takes: their order is free but for memory, and
// whether it may come first depends on what pairs hold.
Problem with_borrowers(Problem problem) {
    for (const std::int64_t acquire : {0, 3})
        problem.tasks.push_back({RankId{0}, TaskKind::other, Duration{2 + acquire}, Bytes{acquire}, Bytes{3 - acquire},
                                 "borrower", {}, {}, {}, ""});
    return problem;
}

}  // namespace

TEST_CASE("exact search of two chains, worked by hand") {
    // a: 3, then (lag 2) c: 5 on the other rank; b: 4 on a's rank, then d: 6 on c's. Order b, a: b 0-4, a 4-7, d 4-10,
    // c 10-15. Order a, b: a 0-3, b 3-7, c 5-10, d 10-16.
    Problem problem;
    problem.name = "hand";
    problem.ranks.resize(2);
    const auto task = [](std::uint32_t rank, std::int64_t duration) {
        return Task{RankId{rank}, TaskKind::forward, Duration{duration}, {}, {}, "t", {}, {}, {}, ""};
    };
    problem.tasks = {task(0, 3), task(0, 4), task(1, 5), task(1, 6)};
    problem.edges = {{TaskId{0}, TaskId{2}, Duration{2}}, {TaskId{1}, TaskId{3}, {}}};

    const Proof proof = prove(problem);

    CHECK(proof.makespan == 15);
    CHECK(proof.schedule->order[0] == std::vector{TaskId{1}, TaskId{0}});
}

TEST_CASE("a slower mode is taken where memory would make a microbatch wait longer") {
    // Two pairs of F 2 and B 2 on rank 0, each B after 10 on rank 1; only one pair fits in mode 0 (hold 6 of 10), two in
    // mode 1 (hold 4, B 3). Both in flight, one of them slow, which leads: F 0-2, F 2-4, rank 1 2-12 and 12-22, B 12-15
    // and 22-24. Were the fast one to lead, the other's B would end at 25; one after the other they would end at 28.
    Problem problem;
    problem.name = "modes";
    problem.ranks.resize(2);
    problem.ranks[0].capacity = Bytes{10};
    const auto task = [](std::uint32_t rank, TaskKind kind, std::int64_t duration, std::int64_t acquire,
                         std::int64_t release) {
        return Task{RankId{rank}, kind, Duration{duration}, Bytes{acquire}, Bytes{release}, "t", {}, {}, {}, ""};
    };
    for (std::uint32_t m = 0; m < 2; ++m) {
        problem.tasks.push_back(task(0, TaskKind::forward, 2, 6, 0));
        problem.tasks.push_back(task(1, TaskKind::other, 10, 0, 0));
        problem.tasks.push_back(task(0, TaskKind::backward, 2, 0, 6));
        problem.edges.push_back({TaskId{3 * m}, TaskId{3 * m + 1}, {}});
        problem.edges.push_back({TaskId{3 * m + 1}, TaskId{3 * m + 2}, {}});
        problem.pairs.push_back({TaskId{3 * m},
                                 TaskId{3 * m + 2},
                                 {},
                                 {{Duration{2}, Duration{2}, {}, Bytes{6}, {}, {}, {}},
                                  {Duration{2}, Duration{3}, {}, Bytes{4}, {}, {}, {}}}});
    }
    validate(problem);

    const Proof proof = prove(problem);

    CHECK(proof.makespan == 24);
    CHECK(proof.schedule->mode[0] + proof.schedule->mode[1] == 1);
    CHECK(proof.makespan == best_by_force(problem)->count());
}

TEST_CASE("exact search equals trying everything on random small problems") {
    // PIPEWEAVER_EXACT_PROBLEMS=30000 takes some ten seconds.
    const char* wanted = std::getenv("PIPEWEAVER_EXACT_PROBLEMS");
    const std::uint64_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 3'000;
    for (std::uint64_t n = 0; n < count; ++n) {
        CAPTURE(n);
        const auto problem = random_problem(shape_of(n), 50'000 + n);
        check_against_force(problem);
        if (n % 9 == 0 && problem.tasks.size() <= 8) check_against_force(with_borrowers(problem));
    }
}
