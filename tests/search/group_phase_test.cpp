#include "search/improve/group_phase.hpp"

#include "search/instance/modes.hpp"
#include "search/instance/priorities.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Shape shape_of(std::uint64_t n) {
    Shape shape = shape_in_turn(n);
    shape.microbatches = 2 + static_cast<std::uint32_t>(n % 5);
    shape.capped = n % 7 != 0;
    return shape;
}

}  // namespace

TEST_CASE("a schedule of the reversed problem, read backwards, runs, fits and ends no later") {
    const auto cases = testing::cases(1500);
    std::uint64_t built = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = random_problem(shape_of(n), n);
        if (problem.tasks.empty()) continue;
        const Replayer replayer(problem);
        const Flat flat(replayer);
        REQUIRE(returns_all_memory(flat));
        const Flat turned = reversed(flat);
        Dispatcher dispatcher(turned);
        const auto mode = uniform_modes(flat).front();
        if (dispatcher.prepare(turned.costs(mode))) continue;
        const auto orders = priorities(turned);
        dispatcher.run(all_choices[n % all_choices.size()], orders[n / 4 % orders.size()].position);
        auto sequence = dispatcher.sequence();
        std::reverse(sequence.begin(), sequence.end());
        const auto replay = replayer.replay(as_schedule(flat, sequence, mode));
        CHECK(replay.outcome == Outcome::completed);
        CHECK(replay.makespan.count() <= dispatcher.makespan());
        ++built;
    }
    CHECK(built > cases.share(1000));
}

TEST_CASE("a problem that keeps memory at its end is not reversed") {
    auto problem = random_problem({}, 3);
    const Replayer whole(problem);
    CHECK(returns_all_memory(Flat(whole)));
    problem.tasks.back().release -= Bytes{1};
    const Replayer keeping(problem);
    CHECK_FALSE(returns_all_memory(Flat(keeping)));
}

TEST_CASE("the group phase never gets worse from round to round, and its schedules run") {
    for (std::uint64_t n = 0; n < testing::cases(60, 12).count; ++n) {
        CAPTURE(n);
        const auto problem = random_problem(shape_of(n), n);
        if (problem.tasks.empty()) continue;
        const Replayer replayer(problem);
        const Flat flat(replayer);
        const auto mode = uniform_modes(flat).back();
        GroupPhase phase(flat, 4, mode);
        // Of all beginnings, or of one a direction.
        std::uint64_t first = phase.begin(n % 3 == 0 ? 0 : UINT64_MAX, in_order);
        CHECK(first <= (n % 3 == 0 ? 2 : UINT64_MAX));
        std::vector<std::int64_t> last(4, INT64_MAX);
        for (int round = 0; round < 5; ++round, first += 4 * 6) {
            phase.round(1, first, 6, in_order);
            for (std::size_t s = 0; s < 4; ++s) {
                const Candidate& best = phase.best(s);
                if (!best.valid()) continue;
                CHECK(best.energy.makespan <= last[s]);
                last[s] = best.energy.makespan;
                const auto replay = replayer.replay(as_schedule(flat, best.sequence, best.mode));
                CHECK(replay.outcome == Outcome::completed);
                CHECK(replay.makespan.count() == best.energy.makespan);
            }
            phase.follow_the_better();
        }
    }
}

TEST_CASE("forwards in order wait for the one before them") {
    // Two ranks, two microbatches in the order 1, 0: rank 0 runs 1 first although 0 could begin as well, and rank 1
    // waits for 1, which takes long on rank 0.
    Problem problem;
    problem.name = "p";
    problem.ranks.resize(2);
    const auto task = [](std::uint32_t rank, std::int64_t duration, std::int64_t microbatch) {
        return Task{RankId{rank}, TaskKind::forward, Duration{duration}, {}, {}, "F", {}, microbatch, {}, ""};
    };
    problem.tasks = {task(0, 9, 1), task(0, 1, 0), task(1, 1, 1), task(1, 1, 0)};
    problem.edges = {{TaskId{0}, TaskId{2}, {}}, {TaskId{1}, TaskId{3}, {}}};
    const Replayer replayer(problem);
    const Flat flat(replayer);
    Dispatcher dispatcher(flat);
    REQUIRE_FALSE(dispatcher.prepare(flat.costs({})));
    dispatcher.run(Choice::in_order, std::vector<std::uint32_t>{0, 1, 2, 3});
    CHECK(dispatcher.sequence() == std::vector<std::uint32_t>{0, 1, 2, 3});
    dispatcher.run(Choice::in_order, std::vector<std::uint32_t>{2, 0, 3, 1});
    CHECK(dispatcher.sequence() == std::vector<std::uint32_t>{1, 0, 3, 2});
}

TEST_CASE("two models in one pipeline have microbatches of their own, and are two kinds") {
    Problem problem;
    problem.name = "p";
    problem.ranks.resize(2);
    const auto task = [](std::uint32_t rank, std::int64_t duration, const char* module) {
        return Task{RankId{rank}, TaskKind::forward, Duration{duration}, {}, {}, "F", {}, 0, {}, module};
    };
    problem.tasks = {task(0, 3, "up"), task(1, 3, "up"), task(1, 2, "down"), task(0, 2, "down")};
    problem.edges = {{TaskId{0}, TaskId{1}, {}}, {TaskId{2}, TaskId{3}, {}}};
    const Replayer replayer(problem);
    const TaskGroups groups{Flat(replayer)};
    CHECK(groups.by_microbatch.size() == 2);
    CHECK(groups.kind_of == std::vector<std::uint32_t>{0, 1});
    CHECK(groups.work == std::vector<std::array<std::int64_t, 2>>{{3, 1}, {2, 1}});
}
