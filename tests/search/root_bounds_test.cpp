#include "pipeweaver/search/bounds.hpp"
#include "search/bounds/one_machine.hpp"
#include "tests/search/random_problem.hpp"

#include <doctest/doctest.h>

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
