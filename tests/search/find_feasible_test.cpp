// Problems so tight that no canonical order or uniform modes fit, and too large for exact search.
#include "search/construct/find_feasible.hpp"

#include "search/exact/exact.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/verified.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Task task(TaskKind kind, std::int64_t acquire, std::int64_t release) {
    return {RankId{0}, kind, Duration{1}, Bytes{acquire}, Bytes{release}, "t", {}, {}, {}, ""};
}

Problem one_rank(std::int64_t capacity) {
    Problem problem;
    problem.name = "tight";
    problem.ranks.resize(1);
    problem.ranks[0].capacity = Bytes{capacity};
    return problem;
}

// Of three tasks each. With room for 9: small takes 5 and leaves 1, large takes 9 and leaves 3, then last gives back 4.
// Only large before small fits, against the order of numbers and of what is left taken.
Problem orders(std::uint32_t copies) {
    Problem problem = one_rank(9);
    for (std::uint32_t first = 0; first < 3 * copies; first += 3) {
        for (const Task& one : {task(TaskKind::other, 5, 4), task(TaskKind::other, 9, 6), task(TaskKind::other, 0, 4)})
            problem.tasks.push_back(one);
        problem.edges.push_back({TaskId{first}, TaskId{first + 2}, {}});
        problem.edges.push_back({TaskId{first + 1}, TaskId{first + 2}, {}});
    }
    return problem;
}

// Two pairs, the second within the first, with room for 10. Both in mode 0 hold 12; both in mode 1 hold 4 and need 7
// more in the inner backward. Only the outer in mode 1 and the inner in mode 0 fit.
Problem modes(std::uint32_t copies) {
    Problem problem = one_rank(10);
    for (std::uint32_t first = 0; first < 4 * copies; first += 4) {
        for (const auto kind : {TaskKind::forward, TaskKind::forward, TaskKind::backward, TaskKind::backward})
            problem.tasks.push_back(task(kind, kind == TaskKind::forward ? 6 : 0, kind == TaskKind::forward ? 0 : 6));
        for (std::uint32_t i = 0; i < 3; ++i) problem.edges.push_back({TaskId{first + i}, TaskId{first + i + 1}, {}});
        const std::vector<Mode> both{{Duration{1}, Duration{1}, {}, Bytes{6}, {}, {}, {}},
                                     {Duration{1}, Duration{2}, {}, Bytes{2}, {}, Bytes{7}, {}}};
        problem.pairs.push_back({TaskId{first}, TaskId{first + 3}, {}, both});
        problem.pairs.push_back({TaskId{first + 1}, TaskId{first + 2}, {}, both});
    }
    validate(problem);
    return problem;
}

Found solve_rounds(const Problem& problem, std::uint64_t rounds, const Executor& execute = in_order) {
    Options options;
    options.max_rounds = rounds;
    return solve(Replayer(problem), options, execute);
}

}  // namespace

TEST_CASE("an order that fits is found where no canonical order does") {
    const auto problem = orders(60);
    REQUIRE_FALSE(Exact::suits(Flat(Replayer(problem))));

    const auto started = solve_rounds(problem, 0), found = solve_rounds(problem, 20);

    CHECK_FALSE(started.schedule);
    CHECK(started.why_not.ends_with("even alone; no other order that fits was found in 0 rounds"));
    testing::check_verified(problem, found);
    CHECK(found.replay.makespan == Duration{180});
}

TEST_CASE("modes that fit are found where no uniform or frugal choice does") {
    const auto problem = modes(50);

    const auto found = solve_rounds(problem, 20);

    CHECK_FALSE(solve_rounds(problem, 0).schedule);
    testing::check_verified(problem, found);
    for (std::size_t k = 0; k < problem.pairs.size(); ++k) CHECK(found.schedule->mode[k] == (k % 2 == 0 ? 1 : 0));
}

TEST_CASE("what is found where no canonical order fits does not depend on the threads") {
    const auto problem = modes(45);
    const auto expected = solve_rounds(problem, 12);
    REQUIRE(expected.schedule);
    for (const int threads : {2, testing::many_threads()}) {
        const auto found = solve_rounds(problem, 12, on_threads(threads));
        CHECK(found.schedule == expected.schedule);
        CHECK(found.rounds == expected.rounds);
        CHECK(found.evaluations == expected.evaluations);
    }
}

TEST_CASE("a large problem that no schedule was found for says where it lacks, and how long it was searched") {
    Problem problem = orders(60);
    problem.ranks[0].capacity = Bytes{8};

    const auto found = solve_rounds(problem, 5);

    CHECK_FALSE(found.schedule);
    CHECK(found.why_not ==
          "rank 0: 2 B (2 bytes) short to run the tasks connected with task 0 't' even alone; no other "
          "order that fits was found in 5 rounds");
    CHECK(found.rounds == 5);
}

TEST_CASE("annealing towards memory keeps what the edges say, and knows when it fits") {
    const auto problem = random_problem({.ranks = 3, .microbatches = 6, .stages = 5, .modes = true, .items = true}, 7);
    const Replayer replayer(problem);
    std::uint64_t steps = 0;
    int fitted = 0, tries = 0;
    for (const std::int64_t part : {1, 2, 3, 4, 6, 8}) {
        CAPTURE(part);
        Flat flat(replayer);
        Problem smaller = problem;
        for (std::size_t r = 0; r < flat.room.size(); ++r) {
            flat.room[r] /= part;
            smaller.ranks[r].capacity = smaller.ranks[r].base + Bytes{flat.room[r]};
        }
        FeasibleAnnealing annealing(flat, flat.reading, std::vector<std::uint32_t>(problem.pairs.size(), 0));
        Random random(3);

        annealing.run(random, 300'000);

        const auto outcome =
            schedule::replay(smaller, as_schedule(flat, annealing.sequence(), annealing.mode())).outcome;
        CHECK(outcome == (annealing.fits() ? Outcome::completed : Outcome::out_of_memory));
        steps += annealing.steps();
        fitted += annealing.fits() ? 1 : 0;
        ++tries;
    }
    CHECK(steps > 10'000);
    CHECK(0 < fitted);
    CHECK(fitted < tries);
}
