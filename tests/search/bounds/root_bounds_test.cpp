#include "pipeweaver/search/bounds.hpp"
#include "search/bounds/one_machine.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Duration value(const std::vector<Bound>& bounds, std::string_view name) {
    for (const Bound& bound : bounds)
        if (bound.name == name) return bound.value;
    FAIL("no bound " << std::string(name));
    return {};
}

Task task(std::uint32_t rank, std::int64_t duration) {
    return {RankId{rank}, TaskKind::forward, Duration{duration}, {}, {}, "t", {}, {}, {}, ""};
}

}  // namespace

TEST_CASE("bounds of two chains that share a rank, worked by hand") {
    // a: rank 0 for 3, then (lag 2) rank 1 for 5; b: rank 0 for 4, then rank 1 for 6; tails 0 and 7
    Problem problem;
    problem.name = "two chains";
    problem.ranks = {{{}, {}, Duration{0}}, {{}, {}, Duration{7}}};
    problem.tasks = {task(0, 3), task(1, 5), task(0, 4), task(1, 6)};
    problem.edges = {{TaskId{0}, TaskId{1}, Duration{2}}, {TaskId{2}, TaskId{3}, Duration{0}}};
    const Replayer replayer(problem);

    const auto bounds = lower_bounds(replayer);

    CHECK(value(bounds, "critical path") == Duration{4 + 6 + 7});
    CHECK(value(bounds, "rank work") == Duration{4 + 5 + 6 + 7});  // rank 1 begins at 4 at the earliest
    CHECK(best_bound(replayer).value == Duration{22});
    CHECK(best_bound(replayer, BoundEffort::quick).name == "rank work");
    CHECK(best_bound(replayer, BoundEffort::quick).value == Duration{22});
}

TEST_CASE("of equal bounds the first is named") {
    Problem problem;
    problem.name = "one rank";
    problem.ranks = {{{}, {}, {}}};
    problem.tasks = {task(0, 5), task(0, 6)};
    problem.edges = {{TaskId{0}, TaskId{1}, {}}};
    const Replayer replayer(problem);
    for (const BoundEffort effort : {BoundEffort::quick, BoundEffort::full}) {
        CHECK(best_bound(replayer, effort).value == Duration{11});
        CHECK(best_bound(replayer, effort).name == "critical path");
    }
}

TEST_CASE("the preemptive bound sees a job that must wait for its head") {
    // Jobs (head, work, tail): (0, 4, 1) runs 0-2, is stopped by (2, 3, 9) until 5, ends at 7; max(5 + 9, 7 + 1) = 14.
    CHECK(preemptive_makespan({{0, 4, 1}, {2, 3, 9}}) == 14);
    CHECK(preemptive_makespan({{0, 4, 1}, {2, 3, 9}, {2, 1, 9}}) == 15);
    CHECK(head_work_tail(std::vector<Job>{{0, 4, 1}, {2, 3, 9}}) == 8);
    CHECK(preemptive_makespan({}) == 0);
}

TEST_CASE("a bound with modes takes each task's shortest duration") {
    Problem problem;
    problem.name = "modes";
    problem.ranks = {{{}, {}, {}}};
    problem.tasks = {task(0, 5), task(0, 5)};
    problem.edges = {{TaskId{0}, TaskId{1}, {}}};
    const auto mode = [](std::int64_t forward, std::int64_t backward) {
        return Mode{Duration{forward}, Duration{backward}, {}, {}, {}, {}, {}};
    };
    problem.pairs = {{TaskId{0}, TaskId{1}, {}, {mode(5, 5), mode(2, 9)}}};

    CHECK(best_bound(Replayer(problem)).value == Duration{2 + 5});
}

TEST_CASE("a bound passes over modes that their rank has no room for") {
    // On a rank with room for 4 a pair of F 2 and B 2 would hold 5, one of F 1 and B 1 take 5 while its backward runs;
    // what fits takes 3 and 7, as trying everything says.
    Problem problem;
    problem.name = "room";
    problem.ranks = {{Bytes{9}, Bytes{5}, {}}};
    problem.tasks = {task(0, 2), task(0, 2)};
    problem.tasks[0].acquire = problem.tasks[1].release = Bytes{5};
    problem.edges = {{TaskId{0}, TaskId{1}, {}}};
    const auto mode = [](std::int64_t forward, std::int64_t backward, std::int64_t held, std::int64_t transient) {
        return Mode{Duration{forward}, Duration{backward}, {}, Bytes{held}, {}, Bytes{transient}, {}};
    };
    problem.pairs = {{TaskId{0}, TaskId{1}, {}, {mode(2, 2, 5, 0), mode(1, 1, 1, 4), mode(3, 7, 3, 1)}}};
    validate(problem);

    CHECK(best_by_force(problem) == Duration{3 + 7});
    CHECK(best_bound(Replayer(problem), BoundEffort::quick).value == Duration{3 + 7});
    problem.ranks[0].capacity.reset();
    CHECK(best_bound(Replayer(problem)).value == Duration{1 + 1});
}

TEST_CASE("no bound exceeds the optimum where some modes have no room, with or without weight gradients") {
    const auto cases = testing::cases(400, 100);
    std::uint64_t solved = 0, tight = 0, left_out = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        Shape shape{.ranks = 2, .microbatches = 2, .stages = 2, .modes = true};
        if (n % 2 == 0) shape = {.ranks = 2, .microbatches = 1, .stages = 3, .split = true, .modes = true};
        if (n % 5 == 0) shape = {.ranks = 3, .microbatches = 1, .stages = 4, .modes = true};
        CAPTURE(n);
        const auto problem = with_little_room(random_problem(shape, 20'000 + n), static_cast<std::int64_t>(n % 4));
        const auto best = best_by_force(problem);
        if (!best) continue;
        ++solved;
        const Replayer replayer(problem);
        for (const Bound& bound : lower_bounds(replayer)) {
            CAPTURE(bound.name);
            CHECK(bound.value <= *best);
        }
        tight += best_bound(replayer).value == *best ? 1 : 0;
        const Flat flat(replayer);
        left_out += std::find(flat.fits_table.begin(), flat.fits_table.end(), 0) != flat.fits_table.end() ? 1 : 0;
    }
    CHECK(solved > cases.share(200));
    CHECK(left_out > solved / 2);
    CHECK(tight > solved / 3);
}

TEST_CASE("no bound exceeds the optimum of a random problem") {
    int solved = 0, tight = 0;
    for (std::uint64_t n = 0; n < 300; ++n) {
        Shape shape{.ranks = 2, .microbatches = 2, .stages = 2};
        shape.capped = n % 2 == 0;
        shape.modes = n % 5 == 0;
        shape.split = !shape.modes && n % 3 == 0;
        if (shape.modes) shape.microbatches = 1 + n % 2;
        const auto problem = random_problem(shape, n);
        const auto best = best_by_force(problem);
        if (!best) continue;
        ++solved;
        CAPTURE(n);
        const Replayer replayer(problem);
        for (const Bound& bound : lower_bounds(replayer)) {
            CAPTURE(bound.name);
            CHECK(bound.value <= *best);
        }
        if (best_bound(replayer).value == *best) ++tight;
        CHECK(best_bound(replayer, BoundEffort::quick).value <= best_bound(replayer).value);
    }
    CHECK(solved > 200);
    CHECK(tight > solved / 4);  // or the bounds would be worth little
}
