#include "pipeweaver/planner/robustness.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"
#include "pipeweaver/schedule/stage_table.hpp"
#include "pipeweaver/search/policies.hpp"

#include <doctest/doctest.h>

#include <span>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;
using namespace pipeweaver::planner;

namespace {

// Two stages of 10 us forward and 20 us backward; stage 0 is all GEMM, stage 1 all attention, errors as given.
StepProblem two_stages(double gemm_error, double attention_error) {
    StepProblem step;
    step.problem = stage_problem(parse_stage_table("t.csv",
                                                   "stage,rank,forward_us,backward_us,weight_us,activation_bytes,"
                                                   "weights_bytes,send_bytes\n0,0,10,20,,1,1,1\n1,1,10,20,,1,1,1\n"),
                                 {4, {}, {}, false});
    for (const Task& task : step.problem.tasks) {
        const bool first = task.stage == 0;
        PassCost cost;
        const auto kind = first ? OperatorClass::gemm : OperatorClass::attention;
        cost.shares[static_cast<std::size_t>(kind)][1] = {
            task.duration, static_cast<double>(task.duration.count()) * (first ? gemm_error : attention_error)};
        step.cost.push_back(cost);
        step.recompute.emplace_back();
    }
    return step;
}

Schedule by(std::string_view policy, const Problem& problem) {
    return *search::apply_policy(policy, Replayer(problem)).schedule;
}

// One microbatch after the other: as slow as can be.
Schedule one_by_one(const Problem& problem) {
    Schedule schedule;
    schedule.order.resize(problem.ranks.size());
    for (std::size_t i = 0; i < problem.tasks.size(); ++i)
        schedule.order[index(problem.tasks[i].rank)].push_back(TaskId{static_cast<std::uint32_t>(i)});
    schedule.mode.assign(problem.pairs.size(), 0);
    return schedule;
}

Gain gain(std::span<const Scheduled> plan, const std::vector<Scheduled>& baseline, std::uint64_t seed,
          int replays = perturbed_replays) {
    const std::vector<std::vector<Scheduled>> baselines{baseline};
    const auto result = robustness(plan, baselines, seed, in_order, replays);
    REQUIRE(result.against.size() == 1);
    CHECK(result.replays == replays);
    return result.against.front();
}

}  // namespace

TEST_CASE("without errors every perturbed replay is the plan's own") {
    const auto step = two_stages(0, 0);
    const auto good = by("1f1b", step.problem), bad = one_by_one(step.problem);
    const std::vector<Scheduled> plan{{&step, &good}}, baseline{{&step, &bad}};
    const auto result = gain(plan, baseline, 1);

    // 1f1b: 10 + 4 * 30 + 20 us; one by one: 4 * 60 us.
    CHECK(result.p10 == 240.0 / 150.0);
    CHECK(result.p90 == 240.0 / 150.0);
    CHECK(result.wins == 200);
}

TEST_CASE("a schedule never wins against itself, whatever the costs") {
    const auto step = two_stages(0.3, 0.3);
    const auto schedule = by("1f1b", step.problem);
    const std::vector<Scheduled> same{{&step, &schedule}};
    const auto result = gain(same, same, 1);
    CHECK(result.wins == 0);
    CHECK(result.p10 == 1);
    CHECK(result.p90 == 1);
}

TEST_CASE("perturbed gains are a function of the seed, and spread as the errors do") {
    const auto step = two_stages(0.3, 0.05);
    const auto good = by("1f1b", step.problem), bad = one_by_one(step.problem);
    const std::vector<Scheduled> plan{{&step, &good}}, baseline{{&step, &bad}};
    const auto first = gain(plan, baseline, 7), again = gain(plan, baseline, 7);
    CHECK(first.p10 == again.p10);
    CHECK(first.p50 == again.p50);
    CHECK(first.p90 == again.p90);
    CHECK(first.p10 < first.p50);
    CHECK(first.p50 < first.p90);
    CHECK(gain(plan, baseline, 8).p50 != first.p50);
}

TEST_CASE("all baselines meet the same perturbations, on any executor") {
    const auto step = two_stages(0.3, 0.05);
    const auto good = by("1f1b", step.problem), bad = one_by_one(step.problem), gpipe = by("gpipe", step.problem);
    const std::vector<Scheduled> plan{{&step, &good}};
    const std::vector<std::vector<Scheduled>> baselines{{{&step, &bad}}, {{&step, &gpipe}}, {{&step, &bad}}};
    const auto result = robustness(plan, baselines, 7),
               backwards = robustness(plan, baselines, 7, [](auto n, auto&job) {
                   for (std::size_t i = n; i-- > 0;) job(i);
               });
    REQUIRE(result.against.size() == 3);
    CHECK(result.against[0].p10 == result.against[2].p10);
    CHECK(result.against[0].p90 == result.against[2].p90);
    CHECK(result.against[1].p50 != result.against[0].p50);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(result.against[i].wins == backwards.against[i].wins);
        CHECK(result.against[i].p10 == backwards.against[i].p10);
        CHECK(result.against[i].p90 == backwards.against[i].p90);
    }
    // The same schedules alone give the same gains: all of a step's schedules have the same work.
    CHECK(gain(plan, baselines[0], 7).p50 == doctest::Approx(result.against[0].p50).epsilon(1e-6));
}

TEST_CASE("an error is the half-width that holds nine of ten") {
    // Against a schedule whose costs are exact, the ratio is the inverse factor itself.
    auto wrong = two_stages(0.2, 0.2), exact = two_stages(0, 0);
    wrong.problem.ranks.resize(2);
    const auto schedule = one_by_one(exact.problem);
    for (auto* step : {&wrong, &exact})
        for (std::size_t i = 0; i < step->cost.size(); ++i) {
            const auto kind = static_cast<std::size_t>(OperatorClass::gemm);
            const double error = step == &wrong ? 0.2 : 0;
            step->cost[i] = {};
            step->cost[i].shares[kind][step == &wrong ? 1 : 0] = {
                step->problem.tasks[i].duration, static_cast<double>(step->problem.tasks[i].duration.count()) * error};
        }
    const std::vector<Scheduled> plan{{&wrong, &schedule}}, baseline{{&exact, &schedule}};
    const auto result = gain(plan, baseline, 3, 4000);
    // exp(1.2816 * 0.2 / 1.645) at the tenth and ninetieth percent of a normal distribution
    CHECK(result.p90 == doctest::Approx(1.1686).epsilon(0.015));
    CHECK(result.p10 == doctest::Approx(1 / 1.1686).epsilon(0.015));
    CHECK(result.p50 == doctest::Approx(1).epsilon(0.015));
}

TEST_CASE("a replay with other durations equals that of a problem which has them") {
    const auto step = two_stages(0, 0);
    const Problem& problem = step.problem;
    for (const char* policy : {"gpipe", "1f1b", "dual-queue"}) {
        const auto schedule = by(policy, problem);
        const FixedOrder order(Replayer(problem), schedule);
        std::vector<std::int64_t> ends;
        CHECK(order.makespan(order.durations(), ends) == replay(problem, schedule).makespan);
        for (std::uint64_t round = 0; round < 50; ++round) {
            Random random(round);
            Problem other = problem;
            std::vector<std::int64_t> durations;
            for (Task& task : other.tasks) {
                task.duration = Duration{1 + static_cast<std::int64_t>(random.below(40'000))};
                durations.push_back(task.duration.count());
            }
            for (Pair& pair : other.pairs) {
                pair.modes[0].forward = other.tasks[index(pair.forward)].duration;
                pair.modes[0].backward = other.tasks[index(pair.backward)].duration;
            }
            CHECK(order.makespan(durations, ends) == replay(other, schedule).makespan);
        }
    }
}
