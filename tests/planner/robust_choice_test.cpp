#include "pipeweaver/planner/robustness.hpp"
#include "planner/schedule/schedule_step.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;
using namespace pipeweaver::planner;

namespace {

// Rank 0 has t and g, rank 1 has u, which needs t, and v, which needs g. The orders (t g, u v) take
// t + max(u, g) + v, the orders (g t, v u) take g + max(t, v) + u.
struct Four {
    StepProblem step;
    Schedule t_first, g_first;
};

struct Work {
    std::int64_t ns;
    OperatorClass kind;
    double error;
};

Four four(const Work& t, const Work& g, const Work& u, const Work& v) {
    Four made;
    made.step.mixes = {{{0, 1}}};
    Problem& problem = made.step.problem;
    problem.name = "four";
    problem.ranks.resize(2);
    for (const auto& [work, rank] : {std::pair(t, 0U), std::pair(g, 0U), std::pair(u, 1U), std::pair(v, 1U)}) {
        Task task;
        task.rank = RankId{rank};
        task.kind = TaskKind::other;
        task.duration = Duration{work.ns};
        problem.tasks.push_back(task);
        PassCost cost;
        cost.shares[static_cast<std::size_t>(work.kind)][1] = {Duration{work.ns},
                                                               static_cast<double>(work.ns) * work.error};
        made.step.cost.push_back(made.step.keep(cost));
        made.step.recompute.push_back(0);
        made.step.mix.push_back(0);
    }
    problem.edges = {{TaskId{0}, TaskId{2}, Duration{0}}, {TaskId{1}, TaskId{3}, Duration{0}}};
    made.t_first.order = {{TaskId{0}, TaskId{1}}, {TaskId{2}, TaskId{3}}};
    made.g_first.order = {{TaskId{1}, TaskId{0}}, {TaskId{3}, TaskId{2}}};
    return made;
}

// Only costs are wrong.
Draws draws(std::uint64_t seed) { return {.seed = seed, .beyond = {0, 0, 0, 0, 0, 0}}; }

constexpr Work exact{10'000, OperatorClass::elementwise, 0};

// As long as each other, but where g is faster than expected only one of the two is, too.
Four equally_long() { return four(exact, {10'000, OperatorClass::gemm, 0.3}, exact, exact); }

// t first takes 29.8 us, g first 30 us. But the first waits for the later of two wrong estimates.
Four nearly_as_long() {
    return four({9'800, OperatorClass::elementwise, 0}, {10'000, OperatorClass::gemm, 0.3},
                {10'000, OperatorClass::attention, 0.3}, exact);
}

search::Found found_by_search(const Four& four, std::vector<search::FoundSchedule> near) {
    search::Found found;
    found.schedule = four.t_first;
    found.replay = replay(four.step.problem, four.t_first);
    found.strategy = "annealing";
    found.bound = found.replay.makespan - Duration{1};
    found.alternatives = std::move(near);
    return found;
}

search::FoundSchedule g_first(const Four& four) {
    return {four.g_first, replay(four.step.problem, four.g_first).makespan, "groups"};
}

}  // namespace

TEST_CASE("of two schedules of the same makespan the one that is never slower under wrong costs is taken") {
    const Four problem = equally_long();
    const std::vector<Side> sides{{{&problem.step, &problem.t_first}}, {{&problem.step, &problem.g_first}}};
    const auto judged = judge(sides, false, draws(1));
    REQUIRE(judged.standings.size() == 2);
    CHECK(judged.standings[0].makespan == Duration{30'000});
    CHECK(judged.standings[1].makespan == Duration{30'000});
    // t + max(u, g) + v is g + max(t, v) + u where g is slower than expected, and longer where it is faster.
    CHECK(judged.standings[1].wins == 200);
    CHECK(judged.standings[0].wins > 70);
    CHECK(judged.standings[0].wins < 130);
    CHECK(judged.taken == 1);
    const std::vector<Side> turned{sides[1], sides[0]};
    CHECK(judge(turned, false, draws(1)).taken == 0);
}

TEST_CASE("the choice is the same on any executor, and a function of the seed") {
    const Four problem = nearly_as_long();
    const std::vector<Side> sides{{{&problem.step, &problem.t_first}}, {{&problem.step, &problem.g_first}}};
    const auto one = judge(sides, true, {5}), two = judge(sides, true, {5}, on_threads(4)),
               other = judge(sides, true, {6});
    CHECK(one.taken == two.taken);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(one.standings[i].wins == two.standings[i].wins);
        CHECK(one.standings[i].median == two.standings[i].median);
        CHECK(one.standings[i].median != other.standings[i].median);
    }
}

TEST_CASE("a schedule that is no more often faster than slower does not take the place of the shortest") {
    const Four problem = equally_long();
    const std::vector<Side> same{{{&problem.step, &problem.g_first}}, {{&problem.step, &problem.g_first}}};
    CHECK(judge(same, false, {1}).taken == 0);
    CHECK(judge(same, true, {1}).taken == 0);
}

TEST_CASE("a plan takes the more robust of two equally long schedules and says what that gains") {
    const Four problem = equally_long();
    auto found = found_by_search(problem, {g_first(problem)});
    const auto choice = choose(problem.step, found, std::nullopt, usual_rule, 1, in_order);
    CHECK(choice.other);
    CHECK(choice.alternatives == 1);
    CHECK(choice.smallest == Duration{30'000});
    CHECK(found.schedule == problem.g_first);
    CHECK(found.replay.makespan == Duration{30'000});
    CHECK(found.replay.start == replay(problem.step.problem, problem.g_first).start);
    CHECK(found.strategy == "groups");
    CHECK(choice.over_smallest.wins > choice.over_smallest.losses);
    CHECK(choice.over_smallest.losses > 0);
    CHECK(choice.over_smallest.p90 > 1.01);
}

TEST_CASE("more than a thousandth of the makespan is given up only if robustness is asked for") {
    const Four problem = nearly_as_long();
    auto found = found_by_search(problem, {g_first(problem)});
    auto choice = choose(problem.step, found, std::nullopt, usual_rule, 1, in_order);
    CHECK(!choice.other);
    CHECK(choice.alternatives == 0);
    CHECK(found.schedule == problem.t_first);

    choice = choose(problem.step, found, std::nullopt, robust_rule, 1, in_order);
    CHECK(choice.other);
    CHECK(choice.smallest == Duration{29'800});
    CHECK(found.schedule == problem.g_first);
    CHECK(found.replay.makespan == Duration{30'000});
    CHECK(choice.over_smallest.p50 > 1.005);
    CHECK(choice.over_smallest.wins > choice.over_smallest.losses);
}

TEST_CASE("no choice makes a plan longer than the fastest known schedule") {
    const Four problem = nearly_as_long();
    auto found = found_by_search(problem, {g_first(problem)});
    const auto choice = choose(problem.step, found, Duration{29'999}, robust_rule, 1, in_order);
    CHECK(!choice.other);
    CHECK(found.replay.makespan == Duration{29'800});
    CHECK(choose(problem.step, found, Duration{30'000}, robust_rule, 1, in_order).other);
}

TEST_CASE("a proven optimum is kept unless robustness is asked for, and not called optimal when it was given up") {
    const Four problem = nearly_as_long();
    auto found = found_by_search(problem, {g_first(problem)});
    found.bound = found.replay.makespan;
    found.stop_reason = StopReason::optimal;
    ChoiceRule rule = usual_rule;
    rule.within = 0.01;
    CHECK(!choose(problem.step, found, std::nullopt, rule, 1, in_order).other);
    CHECK(found.stop_reason == StopReason::optimal);
    CHECK(choose(problem.step, found, std::nullopt, robust_rule, 1, in_order).other);
    CHECK(found.stop_reason == StopReason::no_gain);

    const Four equal = equally_long();
    auto optimal = found_by_search(equal, {g_first(equal)});
    optimal.bound = optimal.replay.makespan;
    optimal.stop_reason = StopReason::optimal;
    CHECK(choose(equal.step, optimal, std::nullopt, usual_rule, 1, in_order).other);
    CHECK(optimal.stop_reason == StopReason::optimal);
}
