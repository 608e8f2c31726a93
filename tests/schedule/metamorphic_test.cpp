// What a change of a problem may do to a schedule whose order stays: nothing that is slower makes it shorter.
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;

namespace {

struct Case {
    Problem problem;
    Schedule schedule;
    Replay before;
};

Case case_of(std::uint64_t seed) {
    const auto instance = testing::random_instance(seed);
    const auto file = parse_problem("problem", instance.problem);
    Case made{file.problem, parse_schedule("solution", instance.solution, file), {}};
    made.before = replay(made.problem, made.schedule);
    REQUIRE(made.before.outcome == Outcome::completed);
    return made;
}

template <class Check>
void for_each_case(Check check) {
    const std::uint64_t count = testing::cases(400, 60).count;
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
        CAPTURE(seed);
        check(case_of(seed), Random(48, seed));
    }
}

bool no_start_is_earlier(const Replay& after, const Replay& before) {
    return std::equal(after.start.begin(), after.start.end(), before.start.begin(), before.start.end(),
                      [](Duration later, Duration earlier) { return later >= earlier; });
}

// Of a task and of every mode of its pair.
void multiply(Problem& problem, std::size_t task, int factor) {
    problem.tasks[task].duration *= factor;
    for (Pair& pair : problem.pairs)
        for (Mode& mode : pair.modes) {
            if (index(pair.forward) == task) mode.forward *= factor;
            if (index(pair.backward) == task) mode.backward *= factor;
            if (pair.weight && index(*pair.weight) == task) mode.weight *= factor;
        }
}

}  // namespace

TEST_CASE("more memory changes nothing of an order's times, and less makes it fit or not") {
    std::uint64_t short_of = 0;
    for_each_case([&](Case one, Random) {
        Problem more = one.problem;
        for (Rank& rank : more.ranks)
            if (rank.capacity) *rank.capacity += Bytes{1'000};
        CHECK(replay(more, one.schedule) == one.before);
        Problem open = one.problem;
        for (Rank& rank : open.ranks) rank.capacity.reset();
        CHECK(replay(open, one.schedule) == one.before);

        Problem less = one.problem;
        for (std::size_t r = 0; r < less.ranks.size(); ++r) less.ranks[r].capacity = one.before.peak[r];
        CHECK(replay(less, one.schedule) == one.before);
        less.ranks.front().capacity = one.before.peak.front() - Bytes{1};
        const Replay after = replay(less, one.schedule);
        if (one.before.peak.front() == less.ranks.front().base) return;  // nothing is ever taken there
        CHECK(after.outcome == Outcome::out_of_memory);
        CHECK(after.short_by >= Bytes{1});
        ++short_of;
    });
    CHECK(short_of > 0);
}

TEST_CASE("a slower link never makes an order's tasks start earlier, and often makes it longer") {
    std::uint64_t longer = 0;
    for_each_case([&](Case one, Random random) {
        Problem slower = one.problem;
        for (Edge& edge : slower.edges)
            if (random.uniform() < 0.5) edge.lag = 2 * edge.lag + Duration{1};
        const Replay after = replay(slower, one.schedule);
        REQUIRE(after.outcome == Outcome::completed);
        CHECK(no_start_is_earlier(after, one.before));
        CHECK(after.makespan >= one.before.makespan);
        CHECK(after.peak == one.before.peak);
        longer += after.makespan > one.before.makespan ? 1 : 0;
    });
    CHECK(longer > 0);
}

TEST_CASE("tasks that take twice as long never make an order shorter") {
    for_each_case([&](Case one, Random random) {
        Problem slower = one.problem;
        for (std::size_t task = 0; task < slower.tasks.size(); ++task)
            if (random.uniform() < 0.3) multiply(slower, task, 2);
        const Replay after = replay(slower, one.schedule);
        REQUIRE(after.outcome == Outcome::completed);
        CHECK(no_start_is_earlier(after, one.before));
        CHECK(after.makespan >= one.before.makespan);
    });
}

TEST_CASE("where all that takes time takes twice as long, an order takes exactly twice as long") {
    for_each_case([&](Case one, Random) {
        Problem twice = one.problem;
        for (std::size_t task = 0; task < twice.tasks.size(); ++task) multiply(twice, task, 2);
        for (Edge& edge : twice.edges) edge.lag *= 2;
        for (Rank& rank : twice.ranks) rank.tail *= 2;
        const Replay after = replay(twice, one.schedule);
        REQUIRE(after.outcome == Outcome::completed);
        CHECK(after.makespan == 2 * one.before.makespan);
        CHECK(after.peak == one.before.peak);
    });
}
