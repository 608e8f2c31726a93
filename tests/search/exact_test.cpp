#include "search/exact/exact.hpp"

#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/search.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
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
    Exact exact(flat, longest_makespan(flat) + 1, limits);
    Proof proof;
    while (exact.state() == Exact::State::working)
        if (const auto found = exact.round(execute)) proof.schedule = as_schedule(flat, found->sequence, found->mode);
    CHECK(exact.state() == Exact::State::proven);
    proof.makespan = exact.makespan();
    proof.nodes = exact.nodes();
    return proof;
}

Found solve_rounds(const Problem& problem, std::uint64_t rounds, const Executor& execute = in_order) {
    Options options;
    options.max_rounds = rounds;
    return solve(Replayer(problem), options, execute);
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

// 2 ranks with up to 5 tasks each, or 3 with up to 4; three kinds of twelve have modes, four are split, half are
// capped.
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

// Two more tasks of rank 0, one of which gives back what the other takes: their order is free but for memory, and
// whether the giver may come first, as what waits for it on rank 1 would have it, depends on what pairs hold.
Problem with_borrowers(Problem problem) {
    const auto add = [&](std::uint32_t rank, std::int64_t duration, std::int64_t acquire, std::int64_t release) {
        problem.tasks.push_back({RankId{rank},
                                 TaskKind::other,
                                 Duration{duration},
                                 Bytes{acquire},
                                 Bytes{release},
                                 "borrower",
                                 {},
                                 {},
                                 {},
                                 ""});
        return TaskId{static_cast<std::uint32_t>(problem.tasks.size() - 1)};
    };
    add(0, 4, 3, 0);
    problem.edges.push_back({add(0, 2, 0, 3), add(1, 20, 0, 0), {}});
    return problem;
}

// Modes that differ only from the backward on: exact search leaves such a choice open as long as it can.
Problem with_alike_forwards(Problem problem) {
    for (Pair& pair : problem.pairs)
        for (Mode& mode : pair.modes) {
            mode.forward = pair.modes.front().forward;
            mode.forward_transient = pair.modes.front().forward_transient;
        }
    validate(problem);
    return problem;
}

// Hardly more memory than the largest task needs.
Problem tighter(Problem problem) {
    for (Rank& rank : problem.ranks) rank.capacity = rank.base + Bytes{1};
    for (const Task& task : problem.tasks) {
        Rank& rank = problem.ranks[index(task.rank)];
        rank.capacity = std::max(*rank.capacity, rank.base + task.acquire + Bytes{5});
    }
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
    // Two pairs of F 2 and B 2 on rank 0, each B after 10 on rank 1; only one pair fits in mode 0 (hold 6 of 10), two
    // in mode 1 (hold 4, B 3). Both in flight, one of them slow, which leads: F 0-2, F 2-4, rank 1 2-12 and 12-22, B
    // 12-15 and 22-24. Were the fast one to lead, the other's B would end at 25; one after the other they would end
    // at 28.
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

TEST_CASE("exact search gives the same schedule after the same nodes, whoever runs it") {
    const auto backwards = [](std::size_t count, const std::function<void(std::size_t)>& job) {
        while (count-- > 0) job(count);
    };
    ExactLimits limits;
    limits.first_width = 16;    // so that layers are cut, and passes follow each other
    limits.round_work = 5'000;  // and layers take several rounds
    for (const bool modes : {false, true}) {
        const auto problem = random_problem({.ranks = 3, .microbatches = 4, .stages = 4, .modes = modes}, 5);
        const Proof expected = prove(problem, in_order, limits);
        REQUIRE(expected.schedule);
        CHECK(expected.nodes > 1'000);
        for (const Executor& execute : {Executor(backwards), on_threads(2), on_threads(testing::many_threads())}) {
            const Proof proof = prove(problem, execute, limits);
            CHECK(proof.schedule->order == expected.schedule->order);
            CHECK(proof.schedule->mode == expected.schedule->mode);
            CHECK(proof.nodes == expected.nodes);
        }
    }
}

TEST_CASE("exact search keeps a fixed order of tasks") {
    const auto problem = random_problem({.ranks = 2, .microbatches = 2, .stages = 2}, 8);
    const Proof freely = prove(problem);
    REQUIRE(freely.schedule);
    Rules rules;
    rules.fixed_order.resize(problem.ranks.size());
    for (const TaskId task : freely.schedule->order[0])
        if (problem.tasks[index(task)].kind == TaskKind::forward) rules.fixed_order[0].push_back(task);
    std::reverse(rules.fixed_order[0].begin(), rules.fixed_order[0].end());

    const Proof ruled = prove(problem, in_order, {}, rules);

    REQUIRE(ruled.schedule);
    CHECK(ruled.makespan >= freely.makespan);
    std::vector<TaskId> kept;
    for (const TaskId task : ruled.schedule->order[0])
        if (problem.tasks[index(task)].kind == TaskKind::forward) kept.push_back(task);
    CHECK(kept == rules.fixed_order[0]);
}

TEST_CASE("the search proves small problems of the shared folder") {
    const auto folder = testing::shared_folder();
    if (!folder) {
        testing::left_out("the small problems of the shared folder, which is not there");
        return;
    }
    // What takes longest (10: some 3 s) is left to longer runs; the files hold the optimum.
    for (const auto& name : testing::full_or_short<std::vector<std::string>>(
             {"00-p2m3", "01-p2m4-split-cap", "02-p3m3", "03-p2m3-cap-modes", "04-p3m4-split", "05-p4m3-cap",
              "06-p2m4-cap-modes", "09-p4m5-cap", "11-p3m3-cap-modes"},
             {"00-p2m3", "01-p2m4-split-cap", "03-p2m3-cap-modes", "06-p2m4-cap-modes"})) {
        CAPTURE(name);
        const auto path = *folder / "data/schedules" / ("small-" + name + "-s1");
        const auto file = read_problem(path.string() + ".json.gz");
        const auto known = read_schedule(path.string() + ".solution.json.gz", file);

        const auto found = solve_rounds(file.problem, 400, on_threads(2));

        CHECK(found.stop_reason == StopReason::optimal);
        CHECK(found.bound == found.replay.makespan);
        CHECK(found.replay.makespan == schedule::replay(file.problem, known).makespan);
    }
}

TEST_CASE("exact search is told the best makespan that is known, and looks at nothing that is no shorter") {
    // Not told, it takes 5,440 and 6,871 evaluations.
    for (const std::uint64_t n : {5U, 11U}) {
        CAPTURE(n);
        const auto problem = random_problem({.ranks = 3, .microbatches = 3, .stages = 3, .modes = true}, 7'000 + n);
        const auto found = solve_rounds(problem, 10);
        CHECK(found.stop_reason == StopReason::optimal);
        CHECK(found.evaluations < 4'000);
    }
}

TEST_CASE("a schedule is found where no canonical order fits") {
    // On one rank with room for 9: small takes 5 and leaves 1, large takes 9 and leaves 3, then last gives back 4.
    // Only large before small fits, against the order of numbers and of what is left taken.
    Problem problem;
    problem.name = "tight";
    problem.ranks.resize(1);
    problem.ranks[0].capacity = Bytes{9};
    const auto task = [](std::int64_t acquire, std::int64_t release) {
        return Task{RankId{0}, TaskKind::other, Duration{1}, Bytes{acquire}, Bytes{release}, "t", {}, {}, {}, ""};
    };
    problem.tasks = {task(5, 4), task(9, 6), task(0, 4)};
    problem.edges = {{TaskId{0}, TaskId{2}, {}}, {TaskId{1}, TaskId{2}, {}}};

    const auto started = solve_rounds(problem, 0), found = solve_rounds(problem, 10);

    CHECK_FALSE(started.schedule);
    REQUIRE(found.schedule);
    CHECK(found.schedule->order[0] == std::vector{TaskId{1}, TaskId{0}, TaskId{2}});
    CHECK(found.stop_reason == StopReason::optimal);
}

TEST_CASE("that no order fits is proven") {
    int absent = 0;
    for (std::uint64_t n = 0; n < testing::cases(200, 60).count; ++n) {
        const auto problem = tighter(random_problem({.ranks = 2, .microbatches = 2, .stages = 3}, 1'000 + n));
        const auto found = solve_rounds(problem, 30);
        const auto best = best_by_force(problem);
        REQUIRE(found.schedule.has_value() == best.has_value());
        if (best) {
            CHECK(found.replay.makespan == *best);
            CHECK(found.bound == *best);
            continue;
        }
        ++absent;
        CHECK(found.why_not.find("; nor does any other order fit") != std::string::npos);
    }
    CHECK(absent > 0);
}

TEST_CASE("exact search equals trying everything on random small problems") {
    // PIPEWEAVER_EXACT_PROBLEMS=30000 takes some ten seconds.
    const char* wanted = std::getenv("PIPEWEAVER_EXACT_PROBLEMS");
    const std::uint64_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : testing::cases(3'000).count;
    for (std::uint64_t n = 0; n < count; ++n) {
        CAPTURE(n);
        auto problem = random_problem(shape_of(n), 50'000 + n);
        if (n % 8 != 0) problem = with_alike_forwards(problem);
        check_against_force(problem);
        if (n % 2 == 0 && problem.tasks.size() <= 6) check_against_force(with_borrowers(problem));
    }
}

TEST_CASE("exact search equals trying everything where modes and memory are tight") {
    const Shape shape{.ranks = 2, .microbatches = 3, .stages = 1, .modes = true};  // three pairs on one rank
    for (std::uint64_t n = 0; n < testing::cases(300).count; ++n) {
        CAPTURE(n);
        const auto problem = with_alike_forwards(random_problem(shape, 90'000 + n));
        check_against_force(problem);
        check_against_force(tighter(problem));
    }
}

TEST_CASE("exact search equals trying everything where some modes have no room, also beside what others give back") {
    for (std::uint64_t n = 0; n < testing::cases(300).count; ++n) {
        CAPTURE(n);
        Shape shape{.ranks = 2, .microbatches = 2, .stages = 2, .modes = true};
        if (n % 2 == 0) shape = {.ranks = 2, .microbatches = 1, .stages = 2, .split = true, .modes = true};
        const auto problem = with_little_room(random_problem(shape, 130'000 + n), static_cast<std::int64_t>(n % 3));
        check_against_force(problem);
        if (n % 2 == 0) check_against_force(with_borrowers(problem));
    }
}
