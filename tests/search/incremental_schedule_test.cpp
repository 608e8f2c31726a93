#include "search/instance/incremental_schedule.hpp"

#include "search/construct/dispatch.hpp"
#include "search/improve/rebuild.hpp"
#include "search/instance/candidate.hpp"
#include "search/instance/modes.hpp"
#include "tests/search/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// Sets `current` to the list schedule in these modes; false if no order fits.
bool load_list_schedule(const Flat& flat, std::span<const std::uint32_t> mode, IncrementalSchedule& current) {
    Dispatcher dispatcher(flat);
    if (dispatcher.prepare(flat.costs(mode))) return false;
    dispatcher.run(Choice::list, flat.place);
    current.load(dispatcher.sequence(), mode);
    return true;
}

// Its own times and energy against the replay that reports.
void check_equal(const Flat& flat, const IncrementalSchedule& current) {
    const auto replay = flat.replayer->replay(as_schedule(flat, current.sequence(), current.mode()));
    REQUIRE(replay.outcome == Outcome::completed);
    CHECK(current.energy().makespan == replay.makespan.count());
    std::int64_t ends = 0;
    const auto costs = flat.costs(current.mode());
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        REQUIRE(current.start(i) == replay.start[i].count());
        ends += (replay.start[i].count() + costs[i].duration) >> current.shift();
    }
    CHECK(current.energy().ends == ends);
    FlatReplay flat_replay(flat);
    const std::vector<std::uint32_t> others(current.mode().size(), 0);  // costs change from one replay to the next
    for (const auto& mode : {others, current.mode()}) flat_replay.replay(current.sequence(), mode);
    CHECK(flat_replay.energy().makespan == current.energy().makespan);
    CHECK(flat_replay.energy().ends == ends);
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) REQUIRE(flat_replay.end(i) == current.end(i));
    for (std::uint32_t r = 0; r < flat.ranks(); ++r)
        CHECK(flat_replay.peak(r) + flat.problem().ranks[r].base.count == replay.peak[r].count);
}

// What is found step by step and not reported: the paths from tasks to the end, and the critical one.
void check_paths(const Flat& flat, IncrementalSchedule& current) {
    std::vector<std::int64_t> tail(flat.tasks());
    std::vector<std::int64_t> after = flat.rank_tail;  // per rank: of the tasks seen so far
    const auto costs = flat.costs(current.mode());
    for (std::size_t k = flat.tasks(); k-- > 0;) {
        const std::uint32_t task = current.sequence()[k];
        tail[task] = after[flat.rank_of[task]];
        for (const Arc& arc : flat.after[task])
            tail[task] = std::max(tail[task], arc.lag_ns + costs[arc.task].duration + tail[arc.task]);
        after[flat.rank_of[task]] = costs[task].duration + tail[task];
        REQUIRE(current.tail(task) == tail[task]);
    }
    IncrementalSchedule fresh(flat);
    fresh.load(current.sequence(), current.mode());
    CHECK(current.critical() == fresh.critical());
}

// Adds edges between tasks far from each other that hold without any slack in a list schedule, for much else may change
// between two tasks before the one after it does.
void add_far_edges(Problem& problem, std::uint64_t n) {
    const Replayer replayer(problem);
    const Flat flat(replayer);
    IncrementalSchedule current(flat);
    if (!load_list_schedule(flat, uniform_modes(flat).back(), current)) return;
    Random random(n, 11);
    for (int k = 0; k < 30; ++k) {
        const std::uint32_t a = current.sequence()[random.below(flat.tasks() - 70)];
        const std::uint32_t b = current.sequence()[flat.tasks() - 1 - random.below(60)];
        const std::int64_t lag = current.start(b) - current.end(a);
        const bool known = std::any_of(problem.edges.begin(), problem.edges.end(), [&](const Edge& edge) {
            return edge.from == TaskId{a} && edge.to == TaskId{b};
        });
        if (lag > 0 && !known) problem.edges.push_back({TaskId{a}, TaskId{b}, Duration{lag}});
    }
}

bool random_step(const Flat& flat, IncrementalSchedule& current, Random& random) {
    const auto& pairs = flat.problem().pairs;
    if (!pairs.empty() && random.below(3) == 0) {
        const auto pair = static_cast<std::uint32_t>(random.below(pairs.size()));
        const IncrementalSchedule::ModeChange change{
            pair, static_cast<std::uint32_t>(random.below(pairs[pair].modes.size()))};
        return current.propose_modes({&change, 1}, INT64_MAX);
    }
    const auto task = static_cast<std::uint32_t>(random.below(flat.tasks()));
    const auto by = static_cast<std::int64_t>(1 + random.below(4));
    const bool earlier = random.below(2) == 0;
    const std::uint32_t other = current.neighbour(task, earlier ? -by : by);
    if (other == UINT32_MAX) return false;
    // Half of the steps under a limit, so that timing gives up on the way.
    const std::int64_t limit = random.below(2) == 0 ? INT64_MAX : current.energy().makespan;
    return earlier ? current.propose_before(task, other, limit) : current.propose_after(task, other, limit);
}

}  // namespace

TEST_CASE("steps kept and taken back leave exactly what a full replay says, within memory") {
    int kept = 0, taken_back = 0, refused = 0;
    for (std::uint64_t n = 0; n < 150; ++n) {
        CAPTURE(n);
        const bool large = n % 5 == 0;
        auto problem = random_problem({.ranks = 3,
                                       .microbatches = large ? 24U : 4U,
                                       .stages = 5,
                                       .split = n % 2 == 0,
                                       .modes = n % 3 == 0,
                                       .items = true,
                                       .capped = !large && n % 4 != 0},
                                      n);
        if (large) add_far_edges(problem, n);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        IncrementalSchedule current(flat);
        if (!load_list_schedule(flat, uniform_modes(flat).back(), current)) continue;
        Random random(n, 3);
        for (int step = 0; step < 200; ++step) {
            const auto before = current.sequence();
            const bool proposed = random_step(flat, current, random);
            const bool keep = proposed && random.below(2) == 0;
            if (keep) current.keep();
            if (proposed && !keep) current.take_back();
            if (!keep) CHECK(current.sequence() == before);
            ++(keep ? kept : proposed ? taken_back : refused);
            if (step % 5 == 0) check_equal(flat, current);
            if (random.below(4) == 0) check_paths(flat, current);
        }
        check_equal(flat, current);
    }
    CHECK(kept > 2000);
    CHECK(taken_back > 2000);
    CHECK(refused > 2000);
}

namespace {

// The schedule with the task moved to where `other` is, in full; nothing if it does not run.
std::optional<std::int64_t> makespan_of_move(const Flat& flat, const IncrementalSchedule& current, std::uint32_t task,
                                             std::uint32_t other) {
    auto schedule = as_schedule(flat, current.sequence(), current.mode());
    auto& order = schedule.order[flat.rank_of[task]];
    const auto from = std::find(order.begin(), order.end(), TaskId{task});
    const auto to = std::find(order.begin(), order.end(), TaskId{other});
    if (from < to)
        std::rotate(from, from + 1, to + 1);
    else
        std::rotate(to, from, from + 1);
    const auto replay = flat.replayer->replay(schedule);
    if (replay.outcome != Outcome::completed) return std::nullopt;
    return replay.makespan.count();
}

}  // namespace

TEST_CASE("a step is refused exactly if its schedule does not run or is longer than the limit") {
    int too_long = 0, does_not_run = 0, proposed = 0;
    for (std::uint64_t n = 0; n < 60; ++n) {
        CAPTURE(n);
        const bool modes = n % 3 == 0;
        const auto problem = random_problem(
            {.ranks = 4, .microbatches = 6, .stages = 8, .split = n % 2 == 0, .modes = modes, .capped = n % 4 != 0}, n);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        IncrementalSchedule current(flat);
        if (!load_list_schedule(flat, uniform_modes(flat).back(), current)) continue;
        Random random(n, 5);
        for (int step = 0; step < 300; ++step) {
            const auto limit = current.energy().makespan + static_cast<std::int64_t>(random.below(4)) - 1;
            std::optional<std::int64_t> makespan;
            bool fits = false;
            if (modes && random.below(2) == 0) {
                const auto pair = static_cast<std::uint32_t>(random.below(problem.pairs.size()));
                const IncrementalSchedule::ModeChange change{
                    pair, static_cast<std::uint32_t>(random.below(problem.pairs[pair].modes.size()))};
                auto schedule = as_schedule(flat, current.sequence(), current.mode());
                schedule.mode[pair] = change.mode;
                const auto replay = replayer.replay(schedule);
                if (replay.outcome == Outcome::completed) makespan = replay.makespan.count();
                fits = current.propose_modes({&change, 1}, limit);
            } else {
                const auto task = static_cast<std::uint32_t>(random.below(flat.tasks()));
                const bool earlier = random.below(2) == 0;
                const auto by = static_cast<std::int64_t>(1 + random.below(random.below(4) == 0 ? 12 : 2));
                const std::uint32_t other = current.neighbour(task, earlier ? -by : by);
                if (other == UINT32_MAX) continue;
                makespan = makespan_of_move(flat, current, task, other);
                fits = earlier ? current.propose_before(task, other, limit) : current.propose_after(task, other, limit);
            }
            REQUIRE(fits == (makespan && *makespan <= limit));
            ++(fits ? proposed : makespan ? too_long : does_not_run);
            if (fits) {
                CHECK(current.energy().makespan == *makespan);
                current.keep();
            }
        }
    }
    CHECK(too_long > 1000);
    CHECK(does_not_run > 1000);
    CHECK(proposed > 1000);
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
    IncrementalSchedule current(flat);

    current.load(flat.reading, {});

    CHECK(current.energy().makespan == 7 * (std::int64_t{1} << 60));
    CHECK(current.energy().ends > 0);
}

TEST_CASE("a critical task starts when the one before it on its rank ends") {
    const auto problem = random_problem({.ranks = 3, .microbatches = 5, .stages = 6, .capped = false}, 8);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    IncrementalSchedule current(flat);
    REQUIRE(load_list_schedule(flat, {}, current));

    const auto critical = current.critical();

    REQUIRE_FALSE(critical.empty());
    for (const std::uint32_t task : critical) CHECK(current.end(current.neighbour(task, -1)) == current.start(task));
}

TEST_CASE("a rebuilt schedule fits, whatever times were wished") {
    int rebuilt = 0;
    for (std::uint64_t n = 0; n < 200; ++n) {
        CAPTURE(n);
        const auto problem = random_problem({.ranks = 3, .microbatches = 5, .stages = 4, .items = true}, n);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        IncrementalSchedule current(flat);
        if (!load_list_schedule(flat, {}, current)) continue;
        const TaskGroups groups(flat);
        Rebuild rebuild(flat, groups);
        for (std::uint64_t k = 0; k < 20; ++k) {
            Random random(n, k);
            REQUIRE(rebuild.propose(current, random));
            const auto replay = replayer.replay(as_schedule(flat, rebuild.sequence(), {}));
            CHECK(replay.outcome == Outcome::completed);
            CHECK(replay.makespan.count() == rebuild.makespan());
            ++rebuilt;
        }
    }
    CHECK(rebuilt > 1000);
}
