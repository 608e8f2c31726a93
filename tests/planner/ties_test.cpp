// Of schedules that are as fast as each other the one with the smaller peak is taken, whatever looked for them.
#include "pipeweaver/planner/stage_plan.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"
#include "pipeweaver/search/standing.hpp"
#include "planner/evaluate/step.hpp"
#include "tests/search/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using schedule::Task;
using schedule::TaskKind;

namespace {

// Four equal stages: gpipe takes as long as 1F1B, and holds every microbatch where 1F1B holds four.
StageRequest four_equal_stages() {
    StageRequest request;
    request.table = schedule::parse_stage_table(
        "equal.csv",
        "stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes\n"
        "0,0,10000,20000,,4,8,0\n1,1,10000,20000,,4,8,0\n2,2,10000,20000,,4,8,0\n3,3,10000,20000,,4,8,0\n");
    request.options.microbatches = 16;
    request.max_rounds = 2;
    return request;
}

double peak_of(const schedule::Problem& problem, const search::Found& found) {
    REQUIRE(found.schedule);
    return search::largest_peak(problem, found.replay);
}

}  // namespace

TEST_CASE("a stage plan needs no more than 1F1B where that is as fast") {
    for (const std::optional<Bytes> capacity : {std::optional<Bytes>{}, std::optional(Bytes{80})})
        for (const char* target : {"free", "torch-csv"}) {
            CAPTURE(target);
            StageRequest request = four_equal_stages();
            request.target = target;
            request.options.capacity = capacity;
            const auto plan = plan_stages(request, in_order, {});
            const auto& problem = plan.best.problem;
            const auto known = search::apply_policy("1f1b", schedule::Replayer(problem));
            REQUIRE(known.schedule);
            CHECK(plan.best.found.replay.makespan == known.replay.makespan);
            CHECK(peak_of(problem, plan.best.found) <= search::largest_peak(problem, known.replay));
            CHECK(schedule::replay(problem, *plan.best.found.schedule) == plan.best.found.replay);
            const auto again = plan_stages(request, on_threads(3), {});
            CHECK(again.best.found.schedule == plan.best.found.schedule);
            CHECK(again.best.found.strategy == plan.best.found.strategy);
        }
}

TEST_CASE("stages are planned with whole backwards where split ones take longer than they gain") {
    // Zero bubble's problem of four ranks: backwards of two equal parts, as long as a forward each.
    StageRequest request;
    request.table = schedule::parse_stage_table(
        "split.csv",
        "stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes\n"
        "0,0,1000,1000,1000,4,8,0\n1,1,1000,1000,1000,4,8,0\n2,2,1000,1000,1000,4,8,0\n3,3,1000,1000,1000,4,8,0\n");
    request.options.microbatches = 8;
    request.max_rounds = 2;
    const auto makespan = [](const StagePlan& plan) { return plan.best.found.replay.makespan; };
    const auto of = [](const StagePlan& plan, std::string_view policy) {
        const auto found = std::find_if(plan.policies.begin(), plan.policies.end(),
                                        [&](const PolicyRun& run) { return run.policy == policy; });
        REQUIRE(found->applies());
        return found->makespan();
    };
    const auto free = plan_stages(request, in_order, {});
    CHECK(!free.split_or_whole);
    request.options.split_slowdown = 1.5;
    const auto slow = plan_stages(request, in_order, {});
    REQUIRE(slow.split_or_whole);
    CHECK(!slow.split_or_whole->split);
    // (8 + 3) (1 + 2) ms whole; in two parts, each of 1.5 ms, no rank is through before 8 (1 + 3) ms and the forwards
    // in front of the last.
    CHECK(makespan(slow) == std::chrono::milliseconds(33));
    CHECK(of(slow, "1f1b") == std::chrono::milliseconds(33));
    CHECK(slow.split_or_whole->otherwise >= std::chrono::milliseconds(35));
    CHECK(of(slow, "zb-h1") > of(free, "zb-h1"));
    for (const Task& task : slow.best.problem.tasks) CHECK(task.kind != TaskKind::weight_gradient);
    request.options.split_slowdown = 1.01;
    const auto little = plan_stages(request, in_order, {});
    REQUIRE(little.split_or_whole);
    CHECK(little.split_or_whole->split);
    CHECK(little.split_or_whole->otherwise == std::chrono::milliseconds(33));
    CHECK(makespan(little) < std::chrono::milliseconds(33));
    CHECK(makespan(little) >= std::chrono::microseconds(3000 + 8 * 3020));
    CHECK(makespan(free) >= std::chrono::milliseconds(27));
    CHECK(of(little, "1f1b") == std::chrono::milliseconds(33));
}

TEST_CASE("a first stage without an input gradient has its backward in one part, which is no slower") {
    StageRequest request;
    request.table = schedule::parse_stage_table(
        "two.csv",
        "stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes\n"
        "0,0,10,20,30,1,1,0\n1,1,10,20,30,1,1,0\n");
    request.options.split_slowdown = 1.5;
    request.options.first_input_gradient = false;
    const auto problem = schedule::stage_problem(request.table, request.options);
    const auto time_of = [&](std::size_t stage, TaskKind kind) {
        const auto found = std::find_if(problem.tasks.begin(), problem.tasks.end(), [&](const Task& task) {
            return task.kind == kind && task.stage == static_cast<std::int64_t>(stage);
        });
        REQUIRE(found != problem.tasks.end());
        return found->duration;
    };
    CHECK(time_of(0, TaskKind::input_gradient) == Duration{1});
    CHECK(time_of(0, TaskKind::weight_gradient) == std::chrono::microseconds(50));
    CHECK(time_of(1, TaskKind::input_gradient) == std::chrono::microseconds(30));
    CHECK(time_of(1, TaskKind::weight_gradient) == std::chrono::microseconds(45));
}

TEST_CASE("a search alone may end with a fuller schedule; a solved problem does not") {
    const StageRequest request = four_equal_stages();
    const auto problem = schedule::stage_problem(request.table, request.options);
    const schedule::Replayer replayer(problem);
    search::Options options;
    options.max_rounds = 2;
    const auto alone = search::solve(replayer, options, in_order);
    SolveRequest asked;
    asked.max_rounds = 2;
    const auto solved = solve_problem(replayer, asked, in_order, {});
    CHECK(solved.replay.makespan == alone.replay.makespan);
    CHECK(solved.bound == alone.bound);
    CHECK(peak_of(problem, solved) < peak_of(problem, alone));
    CHECK(peak_of(problem, solved) == 8 + 4 * 4);
    CHECK(solve_problem(replayer, asked, on_threads(2), {}).schedule == solved.schedule);
}

TEST_CASE("no policy that applies is better than what is solved, and time alone never suffers") {
    for (std::uint64_t n = 0; n < 12; ++n) {
        CAPTURE(n);
        const auto problem = search_tests::random_problem({.ranks = 3,
                                                           .microbatches = 5,
                                                           .stages = 3,
                                                           .split = n % 3 == 1,
                                                           .modes = n % 3 == 0,
                                                           .capped = n % 2 != 0},
                                                          40 + n);
        const schedule::Replayer replayer(problem);
        SolveRequest asked;
        asked.max_rounds = 3;
        search::Options options;
        options.max_rounds = 3;
        const auto alone = search::solve(replayer, options, in_order);
        if (!alone.schedule) continue;
        const auto solved = solve_problem(replayer, asked, in_order, {});
        CHECK(schedule::replay(problem, *solved.schedule) == solved.replay);
        CHECK(solved.replay.makespan <= alone.replay.makespan);
        const auto standing = search::standing_of(problem, solved.replay);
        for (const PolicyRun& run : policies_of(problem, in_order))
            if (run.applies()) CHECK(!(search::standing_of(problem, run.result.replay) < standing));
    }
}

TEST_CASE("the fastest of a step's policies is the least full of equal ones") {
    const StageRequest request = four_equal_stages();
    Step step;
    step.cut.step.problem = schedule::stage_problem(request.table, request.options);
    step.policies = policies_of(step.cut.step.problem, in_order);
    const PolicyRun* gpipe = step.run("gpipe");
    REQUIRE(gpipe != nullptr);
    REQUIRE(step.fastest() != nullptr);
    CHECK(step.fastest()->policy == "1f1b");
    CHECK(gpipe->makespan() == step.fastest()->makespan());
    CHECK(policies_of(step.cut.step.problem, in_order, true).size() < step.policies.size());
}
