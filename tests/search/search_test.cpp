#include "pipeweaver/search/search.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/search/policies.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Found solve_rounds(const Problem& problem, std::uint64_t rounds, Options options = {}) {
    options.max_rounds = rounds;
    return solve(Replayer(problem), options, in_order);
}

// The schedule runs all tasks, each once, and replays to what is claimed, within memory and above the bound.
void check_found(const Problem& problem, const Found& found) {
    REQUIRE(found.schedule);
    std::vector<int> count(problem.tasks.size(), 0);
    for (std::size_t r = 0; r < found.schedule->order.size(); ++r)
        for (const TaskId task : found.schedule->order[r]) {
            CHECK(index(problem.tasks[index(task)].rank) == r);
            ++count[index(task)];
        }
    CHECK(count == std::vector<int>(problem.tasks.size(), 1));
    const auto replay = schedule::replay(problem, *found.schedule);
    CHECK(replay == found.replay);
    CHECK(replay.outcome == Outcome::completed);
    for (std::size_t r = 0; r < problem.ranks.size(); ++r)
        if (problem.ranks[r].capacity) CHECK(replay.peak[r] <= *problem.ranks[r].capacity);
    CHECK(found.bound <= replay.makespan);
}

}  // namespace

TEST_CASE("the search reaches the optimum of most tiny problems and is never below it") {
    const auto cases = testing::cases(120, 30);
    std::uint64_t solved = 0, reached = 0, missed = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        Shape shape{.ranks = 2, .microbatches = 2, .stages = 2};
        shape.modes = n % 4 == 0;
        shape.split = !shape.modes && n % 3 == 0;
        shape.capped = n % 2 == 0;
        const auto problem = random_problem(shape, 1000 + n);
        const auto best = best_by_force(problem);
        const auto found = solve_rounds(problem, 80);
        if (!best) {
            CHECK_FALSE(found.schedule);
            CHECK_FALSE(found.why_not.empty());
            continue;
        }
        if (!found.schedule) {
            ++missed;  // something fits, though no canonical order does
            continue;
        }
        ++solved;
        check_found(problem, found);
        CHECK(found.replay.makespan >= *best);
        if (found.replay.makespan == *best) ++reached;
        for (const Policy& policy : policies()) {
            const auto result = apply_policy(policy.name, Replayer(problem));
            if (!result.schedule) continue;
            CHECK(result.replay.makespan >= *best);
            CHECK(result.replay.makespan >= found.replay.makespan);
        }
    }
    CHECK(solved > cases.share(80));
    const auto spared = testing::full_or_short<std::uint64_t>(0, 1);  // of few, one weighs too much
    CHECK((reached + spared) * 100 >= solved * 95);
    CHECK(missed * 20 <= solved + 20 * spared);
}

TEST_CASE("memory is never exceeded on random problems with capacities") {
    const auto cases = testing::cases(1000);
    std::uint64_t found_some = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = random_problem({.ranks = 1 + static_cast<std::uint32_t>(n % 3),
                                             .microbatches = 4,
                                             .stages = 3,
                                             .split = n % 2 == 0,
                                             .modes = n % 3 == 0,
                                             .items = n % 5 == 0},
                                            5000 + n);
        if (problem.tasks.empty()) continue;
        Options options;
        options.seed = n;
        options.max_rounds = n % 20 == 0 ? 24 : 0;
        const auto found = solve(Replayer(problem), options, in_order);
        if (!found.schedule) {
            CHECK(found.why_not.find("rank") != std::string::npos);
            CHECK(found.why_not.find("bytes") != std::string::npos);
            continue;
        }
        ++found_some;
        check_found(problem, found);
    }
    CHECK(found_some > cases.share(500));
}

TEST_CASE("a fixed order is kept by everything the search returns") {
    auto problem = random_problem({.ranks = 2, .microbatches = 5, .stages = 4, .capped = false}, 21);
    for (Task& task : problem.tasks) task.duration = Duration{1 + (task.duration.count() * 7) % 13};
    // The forwards of the last stage, backwards: an order that no policy keeps by itself.
    Options options;
    options.rules.fixed_order.resize(2);
    for (std::size_t i = problem.tasks.size(); i-- > 0;)
        if (problem.tasks[i].stage == 3 && problem.tasks[i].kind == TaskKind::forward)
            options.rules.fixed_order[index(problem.tasks[i].rank)].push_back(TaskId{static_cast<std::uint32_t>(i)});

    for (const std::uint64_t rounds : {std::uint64_t{0}, std::uint64_t{30}}) {
        const auto found = solve_rounds(problem, rounds, options);
        check_found(problem, found);
        const auto& fixed = options.rules.fixed_order[1];
        REQUIRE(fixed.size() == 5);
        std::vector<TaskId> seen;
        for (const TaskId task : found.schedule->order[1])
            if (std::find(fixed.begin(), fixed.end(), task) != fixed.end()) seen.push_back(task);
        CHECK(seen == fixed);
    }
}

TEST_CASE("rules against the edges, and unknown strategies, are the caller's errors") {
    const auto problem = random_problem({.ranks = 1, .microbatches = 2, .stages = 1, .capped = false}, 1);
    Options options;
    options.rules.fixed_order = {{TaskId{1}, TaskId{0}}};  // the backward before its forward
    CHECK_THROWS_WITH_AS(solve_rounds(problem, 1, options),
                         "rules: the fixed order of a rank contradicts the edges of 'random-1'", Error);
    options = {};
    options.strategy = "defualt";
    CHECK_THROWS_WITH_AS(solve_rounds(problem, 1, options), "unknown strategy 'defualt'; did you mean 'default'?",
                         Error);
}

TEST_CASE("a given start is never made worse, and one that does not run is passed over") {
    const auto problem = random_problem({.ranks = 3, .microbatches = 6, .stages = 6}, 3);
    const auto good = solve_rounds(problem, testing::full_or_short<std::uint64_t>(60, 15));
    REQUIRE(good.schedule);
    Options options;
    auto broken = *good.schedule;
    std::swap(broken.order[0].front(), broken.order[0].back());
    options.starts = {broken, {}, *good.schedule};

    const auto found = solve_rounds(problem, 0, options);

    CHECK(found.replay.makespan <= good.replay.makespan);
    CHECK(found.rounds == 0);
}

TEST_CASE("tasks joined by several edges wait for the longest, and are scheduled once") {
    for (std::uint64_t n = 0; n < 20; ++n) {
        CAPTURE(n);
        const auto problem = random_problem({.ranks = 2, .microbatches = 3, .stages = 4, .modes = n % 2 == 0}, 300 + n);
        auto doubled = problem;
        for (const Edge& edge : problem.edges) {
            doubled.edges.push_back({edge.from, edge.to, Duration{edge.lag.count() / 2}});
            if (n % 3 == 0) doubled.edges.push_back(edge);
        }
        const auto once = solve_rounds(problem, 5), twice = solve_rounds(doubled, 5);
        REQUIRE(once.schedule.has_value() == twice.schedule.has_value());
        if (!once.schedule) continue;
        check_found(doubled, twice);
        CHECK(*once.schedule == *twice.schedule);
    }
}

TEST_CASE("a search ends where the bound is met, and says so") {
    const auto problem = random_problem({.ranks = 1, .microbatches = 4, .stages = 1, .capped = false}, 2);

    const auto found = solve_rounds(problem, 50);

    CHECK(found.stop_reason == StopReason::optimal);
    CHECK(found.replay.makespan == found.bound);
    CHECK(found.rounds < 50);
}

TEST_CASE("the instances of the shared folder are solved within memory, near the best known") {
    const auto shared = testing::shared_folder();
    if (!shared) {
        testing::left_out("the instances of the shared folder, which is not there");
        return;
    }
    for (const auto& name : testing::full_or_short<std::vector<std::string>>(
             {"dip-vlm-s-m8-s1", "dip-t2v-s-m8-recompute-s1", "small-03-p2m3-cap-modes-s1",
              "small-07-p4m4-split-cap-s1", "fused-exp2-cap"},
             {"small-03-p2m3-cap-modes-s1", "small-07-p4m4-split-cap-s1"})) {
        CAPTURE(name);
        const auto folder = *shared / "data/schedules";
        const auto file = read_problem(folder / (name + ".json.gz"));
        const auto known = read_schedule(folder / (name + ".solution.json.gz"), file);
        const auto found = solve_rounds(file.problem, 160);
        check_found(file.problem, found);
        const auto best = schedule::replay(file.problem, known).makespan;
        CHECK(found.bound <= best);
        CHECK(relative_gap(found.replay.makespan, best) < 0.08);
    }
}

TEST_CASE("a search without a number of rounds ends when little was gained for long, the same on any machine" *
          testing::on_release_libraries()) {
    const auto problem = random_problem({.ranks = 3, .microbatches = 9, .stages = 6, .modes = true, .items = true}, 12);
    const Replayer replayer(problem);
    std::uint64_t asked = 0;
    const KeepGoing keep_going = [&](const Progress&) {
        return ++asked > 100'000 ? std::optional(StopReason::budget) : std::nullopt;
    };
    Options options;
    constexpr std::uint64_t waited = 15;
    options.patience = Patience{.rounds = waited, .share = 0.5, .gain = 0.001, .gap = 0};
    const auto found = solve(replayer, options, in_order, keep_going);
    REQUIRE(found.stop_reason == StopReason::no_gain);
    check_found(problem, found);

    // The last rounds gained less than a thousandth, and no such number of rounds before them did.
    std::pair last{found.history.front().rounds, found.history.front().best};
    const auto end = [&] { return std::max(last.first + waited, 2 * last.first); };
    for (const Improvement& one : found.history) {
        CHECK(one.rounds < end());
        if (static_cast<double>(one.best.count()) < 0.999 * static_cast<double>(last.second.count()))
            last = {one.rounds, one.best};
    }
    CHECK(found.rounds == end());
    CHECK(found.rounds > waited);  // or it would have had nothing to gain

    const auto again = solve(replayer, options, on_threads(2), keep_going);
    CHECK(again.rounds == found.rounds);
    CHECK(again.schedule == found.schedule);
    const auto counted = solve_rounds(problem, found.rounds);
    CHECK(counted.schedule == found.schedule);
    CHECK(counted.stop_reason == StopReason::rounds);
}

TEST_CASE("a search ends when its gap is small enough, unless rounds were asked for") {
    const auto problem = random_problem({.ranks = 3, .microbatches = 9, .stages = 6, .modes = true, .items = true}, 12);
    const auto rounds = testing::full_or_short<std::uint64_t>(40, 10);
    const auto whole = solve_rounds(problem, rounds);
    REQUIRE(whole.replay.makespan > whole.bound);
    Options options;
    options.patience = Patience{
        .rounds = 1'000'000, .share = 0, .gain = 0, .gap = relative_gap(whole.replay.makespan, whole.bound) + 1e-9};
    const auto found = solve(Replayer(problem), options, in_order, [](const Progress& progress) {
        return progress.rounds > 1'000 ? std::optional(StopReason::budget) : std::nullopt;
    });
    CHECK(found.stop_reason == StopReason::no_gain);
    CHECK(found.rounds <= rounds);
    CHECK(relative_gap(found.replay.makespan, found.bound) <= options.patience->gap);
    CHECK(name_of(found.stop_reason) == "no_gain");

    options.patience = Patience{.rounds = 1, .share = 0, .gain = 0.5, .gap = 1'000};
    const auto counted = solve_rounds(problem, rounds, options);
    CHECK(counted.rounds == rounds);
    CHECK(counted.stop_reason == StopReason::rounds);
    CHECK(counted.schedule == whole.schedule);
}
