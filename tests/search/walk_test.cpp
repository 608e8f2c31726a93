#include "search/walk.hpp"

#include "search/candidate.hpp"
#include "search/dispatch.hpp"
#include "search/modes.hpp"
#include "search/rebuild.hpp"
#include "tests/search/random_problem.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// The walk's own times and energy against the replay that reports.
void check_equal(const Flat& flat, const Walk& walk) {
    const auto replay = flat.replayer->replay(as_schedule(flat, walk.sequence(), walk.mode()));
    REQUIRE(replay.outcome == Outcome::completed);
    CHECK(walk.energy().makespan == replay.makespan.count());
    std::int64_t ends = 0;
    const auto costs = flat.costs(walk.mode());
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        REQUIRE(walk.start(i) == replay.start[i].count());
        ends += (replay.start[i].count() + costs[i].duration) >> walk.shift();
    }
    CHECK(walk.energy().ends == ends);
}

bool random_step(const Flat& flat, Walk& walk, Random& random) {
    const auto& pairs = flat.problem().pairs;
    if (!pairs.empty() && random.below(3) == 0) {
        const auto pair = static_cast<std::uint32_t>(random.below(pairs.size()));
        const Walk::ModeChange change{pair, static_cast<std::uint32_t>(random.below(pairs[pair].modes.size()))};
        return walk.propose_modes({&change, 1}, INT64_MAX);
    }
    const auto task = static_cast<std::uint32_t>(random.below(flat.tasks()));
    const auto by = static_cast<std::int64_t>(1 + random.below(4));
    const bool earlier = random.below(2) == 0;
    const std::uint32_t other = walk.neighbour(task, earlier ? -by : by);
    if (other == UINT32_MAX) return false;
    // Half of the steps under a limit, so that timing gives up on the way.
    const std::int64_t limit = random.below(2) == 0 ? INT64_MAX : walk.energy().makespan;
    return earlier ? walk.propose_before(task, other, limit) : walk.propose_after(task, other, limit);
}

}  // namespace

TEST_CASE("steps kept and taken back leave exactly what a full replay says, within memory") {
    int kept = 0, taken_back = 0, refused = 0;
    for (std::uint64_t n = 0; n < 150; ++n) {
        CAPTURE(n);
        const auto problem = random_problem({.ranks = 3,
                                             .microbatches = 4,
                                             .stages = 5,
                                             .split = n % 2 == 0,
                                             .modes = n % 3 == 0,
                                             .items = true,
                                             .capped = n % 4 != 0},
                                            n);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        Dispatcher dispatcher(flat);
        const auto mode = uniform_modes(flat).back();
        if (dispatcher.prepare(flat.costs(mode))) continue;
        dispatcher.run(Choice::list, flat.place);
        Walk walk(flat);
        walk.load(dispatcher.sequence(), mode);
        Random random(n, 3);
        for (int step = 0; step < 200; ++step) {
            const auto before = walk.sequence();
            const bool proposed = random_step(flat, walk, random);
            const bool keep = proposed && random.below(2) == 0;
            if (keep) walk.keep();
            if (proposed && !keep) walk.take_back();
            if (!keep) CHECK(walk.sequence() == before);
            ++(keep ? kept : proposed ? taken_back : refused);
            if (step % 5 == 0) check_equal(flat, walk);
        }
        check_equal(flat, walk);
    }
    CHECK(kept > 2000);
    CHECK(taken_back > 2000);
    CHECK(refused > 2000);
}

TEST_CASE("times beyond 2^60 ns are summed without overflow") {
    Problem problem;
    problem.name = "long";
    problem.ranks = {{{}, {}, {}}};
    for (int i = 0; i < 7; ++i)
        problem.tasks.push_back(
            {RankId{0}, TaskKind::other, Duration{std::int64_t{1} << 60}, {}, {}, "t", {}, {}, {}, ""});
    validate(problem);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    Walk walk(flat);

    walk.load(flat.reading, {});

    CHECK(walk.energy().makespan == 7 * (std::int64_t{1} << 60));
    CHECK(walk.energy().ends > 0);
}

TEST_CASE("a critical task starts when the one before it on its rank ends") {
    const auto problem = random_problem({.ranks = 3, .microbatches = 5, .stages = 6, .capped = false}, 8);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    Dispatcher dispatcher(flat);
    REQUIRE_FALSE(dispatcher.prepare(flat.costs({})));
    dispatcher.run(Choice::list, flat.place);
    Walk walk(flat);
    walk.load(dispatcher.sequence(), {});

    const auto critical = walk.critical();

    REQUIRE_FALSE(critical.empty());
    for (const std::uint32_t task : critical) CHECK(walk.end(walk.neighbour(task, -1)) == walk.start(task));
}

TEST_CASE("a rebuilt schedule fits, whatever times were wished") {
    int rebuilt = 0;
    for (std::uint64_t n = 0; n < 200; ++n) {
        CAPTURE(n);
        const auto problem = random_problem({.ranks = 3, .microbatches = 5, .stages = 4, .items = true}, n);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        Dispatcher dispatcher(flat);
        if (dispatcher.prepare(flat.costs({}))) continue;
        dispatcher.run(Choice::list, flat.place);
        Walk walk(flat);
        walk.load(dispatcher.sequence(), {});
        const TaskGroups groups(flat);
        Rebuild rebuild(flat, groups);
        for (std::uint64_t k = 0; k < 20; ++k) {
            Random random(n, k);
            REQUIRE(rebuild.propose(walk, random));
            const auto replay = replayer.replay(as_schedule(flat, rebuild.sequence(), {}));
            CHECK(replay.outcome == Outcome::completed);
            CHECK(replay.makespan.count() == rebuild.makespan());
            ++rebuilt;
        }
    }
    CHECK(rebuilt > 1000);
}
