#include "search/construct/gap_filling.hpp"

#include "search/instance/modes.hpp"
#include "tests/search/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Task task_of(std::uint32_t rank, bool forward, std::int64_t ns, std::int64_t microbatch) {
    return {RankId{rank},
            forward ? TaskKind::forward : TaskKind::backward,
            Duration{ns},
            Bytes{forward ? 1 : 0},
            Bytes{forward ? 0 : 1},
            "t",
            std::int64_t{rank},
            microbatch,
            std::optional<std::int64_t>{},
            "m"};
}

// One microbatch's chain over both ranks and back, each task holding a byte from its forward to its backward.
void add_chain(Problem& problem, const std::vector<std::int64_t>& ns) {
    const auto first = static_cast<std::uint32_t>(problem.tasks.size());
    const std::array<std::uint32_t, 4> rank{0, 1, 1, 0};
    for (std::uint32_t k = 0; k < 4; ++k) {
        problem.tasks.push_back(task_of(rank[k], k < 2, ns[k], first / 4));
        if (k > 0) problem.edges.push_back({TaskId{first + k - 1}, TaskId{first + k}, {}});
    }
}

// A long microbatch with a gap of 10 on rank 0, and one of 2 + 1 + 3 + 4 that fits into it.
Problem long_and_short(std::int64_t capacity) {
    Problem problem;
    problem.name = "gaps";
    problem.ranks.resize(2);
    for (auto& rank : problem.ranks) rank.capacity = Bytes{capacity};
    add_chain(problem, {5, 3, 7, 5});
    add_chain(problem, {2, 1, 3, 4});
    validate(problem);
    return problem;
}

// When the tasks start that were placed at once, the long microbatch first; the makespan after them.
std::vector<std::int64_t> starts_and_makespan(std::int64_t capacity) {
    const auto problem = long_and_short(capacity);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const std::vector<std::uint32_t> mode, order{0, 1};
    GapFilling gaps(flat, TaskGroups(flat));
    gaps.set_costs(flat.costs(mode));
    REQUIRE(gaps.run(order, std::vector<std::int64_t>(flat.tasks(), 0)));
    const auto replay = replayer.replay(as_schedule(flat, gaps.sequence(), mode));
    REQUIRE(replay.outcome == Outcome::completed);
    std::vector<std::int64_t> found;
    for (const auto start : replay.start) found.push_back(start.count());
    found.push_back(gaps.makespan());
    return found;
}

}  // namespace

TEST_CASE("a microbatch goes into the gaps of the one placed before it, in memory that lasts") {
    // Rank 0: 0-5, short 5-7, ..., short 19-20 does not fit before 15-20. Rank 1: 5-8, 8-15, short 15-16, 16-19.
    CHECK(starts_and_makespan(2) == std::vector<std::int64_t>{0, 5, 8, 15, 5, 15, 16, 20, 24});
    // Memory for one microbatch: one after the other.
    CHECK(starts_and_makespan(1) == std::vector<std::int64_t>{0, 5, 8, 15, 20, 22, 23, 26, 30});
}

TEST_CASE("schedules made of gaps fit, and take no longer than they say") {
    int built = 0, capped = 0;
    for (std::uint64_t n = 0; n < 400; ++n) {
        CAPTURE(n);
        const auto problem = random_problem(three_ranks_in_turn(n), 900 + n);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        const TaskGroups groups(flat);
        const auto mode = uniform_modes(flat).front();
        const auto costs = flat.costs(mode);
        GapFilling gaps(flat, groups);
        REQUIRE(gaps.suits());
        gaps.set_costs(costs);
        std::vector<std::uint32_t> order(groups.by_microbatch.size());
        std::iota(order.begin(), order.end(), 0U);
        Random random(5, n);
        std::vector<std::int64_t> release;
        for (std::uint32_t i = 0; i < flat.tasks(); ++i)
            release.push_back(static_cast<std::int64_t>(random.below(1 + static_cast<std::uint64_t>(flat.tail[i]))));
        if (!gaps.run(order, release)) continue;

        const auto schedule = as_schedule(flat, gaps.sequence(), mode);
        REQUIRE(replayer.replay(schedule).outcome == Outcome::completed);
        // Its order, timed with waits for the moments, takes no longer than it says.
        std::vector<std::int64_t> end(flat.tasks(), 0), clock(flat.ranks(), 0);
        std::int64_t makespan = 0;
        for (const std::uint32_t task : gaps.sequence()) {
            std::int64_t start = std::max(release[task], clock[flat.rank_of[task]]);
            for (const Arc& arc : flat.before[task]) start = std::max(start, end[arc.task] + arc.lag_ns);
            end[task] = start + costs[task].duration;
            clock[flat.rank_of[task]] = end[task];
            makespan = std::max(makespan, end[task] + flat.rank_tail[flat.rank_of[task]]);
        }
        CHECK(makespan <= gaps.makespan());
        ++built;
        capped += n % 4 != 0 ? 1 : 0;
    }
    CHECK(built > 200);
    CHECK(capped > 100);
}
