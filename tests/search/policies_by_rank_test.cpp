// Policies with a memory mode of its own for each rank.
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/search/policies.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/verified.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// 1F1B's shape in random numbers, with `menu` modes that hold less and take longer one after the other, for every pair.
Problem ordered_problem(std::uint64_t number, std::size_t menu) {
    Random random(number, 5);
    const auto below = [&](std::int64_t bound) {
        return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
    };
    const auto ranks = static_cast<std::uint32_t>(2 + below(3)),
               microbatches = static_cast<std::uint32_t>(2 + below(5));
    Problem problem;
    problem.name = "ordered";
    for (std::uint32_t r = 0; r < ranks; ++r) {
        const std::int64_t base = below(5);
        problem.ranks.push_back({Bytes{base + 18 + below(70)}, Bytes{base}, Duration{below(4)}});
    }
    for (std::int64_t m = 0; m < microbatches; ++m) {
        const auto first = static_cast<std::uint32_t>(problem.tasks.size());
        for (std::uint32_t k = 0; k < 2 * ranks; ++k) {
            const std::uint32_t r = k < ranks ? k : 2 * ranks - 1 - k;
            problem.tasks.push_back({RankId{r},
                                     k < ranks ? TaskKind::forward : TaskKind::backward,
                                     Duration{1},
                                     {},
                                     {},
                                     "t",
                                     r,
                                     m,
                                     0,
                                     "m"});
            if (k > 0) problem.edges.push_back({TaskId{first + k - 1}, TaskId{first + k}, Duration{below(3)}});
        }
        for (std::uint32_t r = 0; r < ranks; ++r) {
            Pair pair{TaskId{first + r}, TaskId{first + 2 * ranks - 1 - r}, {}, {}};
            Mode mode;
            mode.forward = Duration{1 + below(9)};
            mode.backward = Duration{1 + below(9)};
            mode.held = Bytes{15 + below(4)};
            for (std::size_t j = 0; j < menu; ++j) {
                pair.modes.push_back(mode);
                mode.backward += Duration{1 + below(4)};
                mode.held -= Bytes{1 + below(13 / static_cast<std::int64_t>(menu))};
                mode.transient = Bytes{2};
            }
            const auto costs = costs_in(pair, pair.modes.front());
            apply(problem.tasks[index(pair.forward)], costs[0]);
            apply(problem.tasks[index(pair.backward)], costs[1]);
            problem.pairs.push_back(std::move(pair));
        }
    }
    validate(problem);
    return problem;
}

std::size_t rank_of(const Problem& problem, const Pair& pair) { return index(problem.tasks[index(pair.forward)].rank); }

// The shortest replay of the order that fits, over all choices of a mode for each rank.
std::optional<Duration> best_of_all(const Problem& problem, const PolicyOrder& order, std::size_t menu) {
    std::optional<Duration> best;
    std::vector<std::uint32_t> of_rank(problem.ranks.size(), 0);
    while (true) {
        Schedule schedule{order.ranks, {}};
        for (const Pair& pair : problem.pairs) schedule.mode.push_back(of_rank[rank_of(problem, pair)]);
        const auto replayed = replay(problem, schedule);
        if (replayed.outcome == Outcome::completed && (!best || replayed.makespan < *best)) best = replayed.makespan;
        std::size_t r = 0;
        while (r < of_rank.size() && ++of_rank[r] == menu) of_rank[r++] = 0;
        if (r == of_rank.size()) return best;
    }
}

void check_claims(const Problem& problem, const PolicyResult& result) {
    testing::check_verified(problem, as_found("1f1b", result, {}));
    std::vector<std::optional<std::uint32_t>> of_rank(problem.ranks.size());
    for (std::size_t k = 0; k < problem.pairs.size(); ++k) {
        auto& known = of_rank[rank_of(problem, problem.pairs[k])];
        if (!known) known = result.schedule->mode[k];
        CHECK(known == result.schedule->mode[k]);
    }
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) CHECK(result.replay.peak[r] <= *problem.ranks[r].capacity);
}

}  // namespace

TEST_CASE("modes by rank are the best of all choices by rank, and no uniform mode is faster") {
    std::size_t fit = 0, better = 0;
    for (std::uint64_t number = 0; number < 200; ++number) {
        CAPTURE(number);
        const std::size_t menu = 2 + number % 3;
        const Problem problem = ordered_problem(number, menu);
        const Replayer replayer(problem);
        for (const std::string policy : {"1f1b", "gpipe"}) {
            CAPTURE(policy);
            const auto by_rank = apply_policy_by_rank(policy, replayer), uniform = apply_policy(policy, replayer);
            const auto best = best_of_all(problem, fixed_order(policy, replayer), menu);
            REQUIRE(by_rank.schedule.has_value() == best.has_value());
            if (!best) {
                CHECK(!uniform.schedule);
                CHECK(by_rank.why_not.starts_with("does not fit: rank "));
                continue;
            }
            ++fit;
            check_claims(problem, by_rank);
            CHECK(by_rank.replay.makespan == *best);
            if (!uniform.schedule) continue;
            CHECK(by_rank.replay.makespan <= uniform.replay.makespan);
            if (by_rank.replay.makespan < uniform.replay.makespan) ++better;
        }
    }
    CHECK(fit > 100);
    CHECK(better > 20);
}

TEST_CASE("modes by rank: each rank's is the fastest that fits it, on any problem with modes") {
    std::size_t applied = 0;
    for (std::uint64_t number = 0; number < 300; ++number) {
        CAPTURE(number);
        const Shape shape{.ranks = 3,
                          .microbatches = 4,
                          .stages = number % 2 == 0 ? 3U : 6U,
                          .split = number % 3 == 0,
                          .modes = true,
                          .items = false,
                          .capped = true};
        const Problem problem = random_problem(shape, number);
        const Replayer replayer(problem);
        const std::string policy = shape.stages == 3 ? "1f1b" : "gpipe";
        const auto result = apply_policy_by_rank(policy, replayer);
        if (!result.schedule) {
            CHECK(!apply_policy(policy, replayer).schedule);
            continue;
        }
        ++applied;
        check_claims(problem, result);
        // What is faster for a rank does not fit it, whatever the others do.
        for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
            const auto with = [&](std::optional<std::uint32_t> mode) {
                Problem alone = problem;
                for (std::size_t other = 0; other < alone.ranks.size(); ++other)
                    if (other != r) alone.ranks[other].capacity.reset();
                Schedule schedule = *result.schedule;
                Duration time{};
                for (std::size_t k = 0; k < problem.pairs.size(); ++k) {
                    if (rank_of(problem, problem.pairs[k]) != r) continue;
                    if (mode) schedule.mode[k] = *mode;
                    const Mode& taken = problem.pairs[k].modes[schedule.mode[k]];
                    time += taken.forward + taken.backward + taken.weight;
                }
                return std::pair(time, replay(alone, schedule).outcome == Outcome::completed);
            };
            for (const std::uint32_t mode : {0U, 1U, 2U})
                if (with(mode).first < with({}).first) CHECK(!with(mode).second);
        }
    }
    CHECK(applied > 100);
}

TEST_CASE("modes by rank need an order that the policy has") {
    Problem problem = ordered_problem(1, 2);
    for (Task& task : problem.tasks) task.stage.reset();
    const auto result = apply_policy_by_rank("1f1b", Replayer(problem));
    CHECK(!result.schedule);
    CHECK(result.why_not == apply_policy("1f1b", Replayer(problem)).why_not);
    CHECK_FALSE(result.why_not.empty());
}
