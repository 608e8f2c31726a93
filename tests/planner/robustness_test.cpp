#include "pipeweaver/planner/robustness.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"
#include "pipeweaver/schedule/stage_table.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/robustness/perturbed_costs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;
using namespace pipeweaver::planner;

namespace {

constexpr Uncertainty none{0, 0, 0, 0, 0, 0};

// One thing alone is off.
Uncertainty only(double Uncertainty::*what, double sigma = 0.1) {
    Uncertainty one = none;
    one.*what = sigma;
    return one;
}

// Two stages of 10 us forward and 20 us backward, each of a module of its own; stage 0 is all GEMM, stage 1 all
// attention, errors as given.
StepProblem two_stages(double gemm_error, double attention_error) {
    StepProblem step;
    step.problem = stage_problem(parse_stage_table("t.csv",
                                                   "stage,rank,forward_us,backward_us,weight_us,activation_bytes,"
                                                   "weights_bytes,send_bytes\n0,0,10,20,,1,1,1\n1,1,10,20,,1,1,1\n"),
                                 {4, {}, {}});
    step.mixes = {{{0, 1}}, {{1, 1}}};
    for (const Task& task : step.problem.tasks) {
        const bool first = task.stage == 0;
        PassCost cost;
        const auto kind = first ? OperatorClass::gemm : OperatorClass::attention;
        cost.shares[static_cast<std::size_t>(kind)][1] = {
            task.duration, static_cast<double>(task.duration.count()) * (first ? gemm_error : attention_error)};
        step.cost.push_back(step.keep(cost));
        step.recompute.push_back(0);
        step.mix.push_back(first ? 0 : 1);
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

// Under the errors of costs alone.
Gain gain(std::span<const Scheduled> plan, const std::vector<Scheduled>& baseline, std::uint64_t seed,
          int replays = perturbed_replays) {
    const std::vector<std::vector<Scheduled>> baselines{baseline};
    const auto result = robustness(plan, baselines, {seed, replays, none});
    REQUIRE(result.against.size() == 1);
    CHECK(result.replays == replays);
    return result.against.front();
}

// Of the plan alone.
Robustness own(const StepProblem& step, const Schedule& schedule, const Draws& draws) {
    const std::vector<Scheduled> plan{{&step, &schedule}};
    return robustness(plan, {}, draws);
}

// Nothing is off: all factors are 1.
Factors exact(const StepProblem& step, const Schedule& schedule) {
    const std::vector<Side> sides{{{&step, &schedule}}};
    Spread spread = spread_of(sides, none);
    std::fill(spread.kind.begin(), spread.kind.end(), 0.0);
    return {spread, 1, 0};
}

}  // namespace

TEST_CASE("where nothing is off every replay is the plan's own") {
    const auto step = two_stages(0, 0);
    const auto good = by("1f1b", step.problem), bad = one_by_one(step.problem);
    const std::vector<Scheduled> plan{{&step, &good}}, baseline{{&step, &bad}};
    const auto result = gain(plan, baseline, 1);

    // 1f1b: 10 + 4 * 30 + 20 us; one by one: 4 * 60 us.
    CHECK(result.p10 == 240.0 / 150.0);
    CHECK(result.p90 == 240.0 / 150.0);
    CHECK(result.wins == 200);
}

TEST_CASE("a schedule never wins against itself, whatever is off") {
    const auto step = two_stages(0.3, 0.3);
    const auto schedule = by("1f1b", step.problem);
    const std::vector<Scheduled> same{{&step, &schedule}};
    const std::vector<Side> itself{same};
    const auto result = robustness(same, itself, {1}).against.front();
    CHECK(result.wins == 0);
    CHECK(result.losses == 0);
    CHECK(result.p10 == 1);
    CHECK(result.p90 == 1);
}

TEST_CASE("of two schedules within 3 % neither wins every draw, unless both run at once") {
    const auto step = two_stages(0, 0);
    auto longer = step;
    for (Pair& pair : longer.problem.pairs) {
        pair.modes.front().backward += pair.modes.front().backward * 4 / 100;
        apply(longer.problem.tasks[index(pair.backward)], costs_in(pair, pair.modes.front())[1]);
    }
    const auto schedule = by("1f1b", step.problem);
    const std::vector<Scheduled> plan{{&step, &schedule}};
    const std::vector<Side> baseline{{{&longer, &schedule}}};
    REQUIRE(replay(longer.problem, schedule).makespan > replay(step.problem, schedule).makespan * 102 / 100);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const Gain alone = robustness(plan, baseline, {seed}).against.front();
        CHECK(alone.wins < 200);
        CHECK(alone.wins > 120);
        CHECK(robustness(plan, baseline, {.seed = seed, .paired = true}).against.front().wins == 200);
    }
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
    const auto result = robustness(plan, baselines, {7}), threads = robustness(plan, baselines, {7}, on_threads(4)),
               backwards = robustness(plan, baselines, {7}, [](auto n, auto&job) {
                   for (std::size_t i = n; i-- > 0;) job(i);
               });
    CHECK(result.p10 == threads.p10);
    CHECK(result.p90 == backwards.p90);
    CHECK(result.out_of_memory == threads.out_of_memory);
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
    const auto alone = robustness(plan, {baselines.data(), 1}, {7});
    CHECK(alone.against[0].p50 == doctest::Approx(result.against[0].p50).epsilon(1e-6));
}

TEST_CASE("an error is the half-width that holds nine of ten") {
    // Against a schedule whose costs are exact, the ratio is the inverse factor itself.
    auto wrong = two_stages(0.2, 0.2), exact = two_stages(0, 0);
    wrong.mix = exact.mix = std::vector<std::uint32_t>(wrong.mix.size(), 0);  // one module
    const auto schedule = one_by_one(exact.problem);
    for (auto* step : {&wrong, &exact})
        for (std::size_t i = 0; i < step->cost.size(); ++i) {
            const auto kind = static_cast<std::size_t>(OperatorClass::gemm);
            const double error = step == &wrong ? 0.2 : 0;
            PassCost cost;
            cost.shares[kind][step == &wrong ? 1 : 0] = {
                step->problem.tasks[i].duration, static_cast<double>(step->problem.tasks[i].duration.count()) * error};
            step->cost[i] = step->keep(cost);
        }
    const std::vector<Scheduled> plan{{&wrong, &schedule}}, baseline{{&exact, &schedule}};
    const auto result = gain(plan, baseline, 3, 4000);
    // exp(1.2816 * 0.2 / 1.645) at the tenth and ninetieth percent of a normal distribution
    CHECK(result.p90 == doctest::Approx(1.1686).epsilon(0.015));
    CHECK(result.p10 == doctest::Approx(1 / 1.1686).epsilon(0.015));
    CHECK(result.p50 == doctest::Approx(1).epsilon(0.015));
}

TEST_CASE("a module's factor lengthens the passes of that module, and of mixed passes its part") {
    auto step = two_stages(0, 0);
    const auto schedule = by("1f1b", step.problem);
    ReplaySpace space;
    const auto durations = [&](std::size_t module, double factor) {
        Factors factors = exact(step, schedule);
        const auto first = factors.kind.begin() + static_cast<std::ptrdiff_t>(module * kinds_of_module);
        std::fill(first, first + static_cast<std::ptrdiff_t>(kinds_of_module), factor);
        static_cast<void>(UncertainSchedule({&step, &schedule}).makespan(factors, {}, space));
        return space.duration;
    };
    for (const std::size_t module : {std::size_t{0}, std::size_t{1}}) {
        const auto longer = durations(module, 1.5);
        for (std::size_t i = 0; i < longer.size(); ++i) {
            const auto costed = step.problem.tasks[i].duration.count();
            CHECK(longer[i] == (step.mix[i] == module ? costed * 3 / 2 : costed));
        }
    }
    step.mixes.push_back({{0, 0.25}, {1, 0.75}});
    step.mix[0] = 2;
    CHECK(durations(0, 1.4)[0] == step.problem.tasks[0].duration.count() * 11 / 10);
    CHECK(durations(1, 1.4)[0] == step.problem.tasks[0].duration.count() * 13 / 10);
}

TEST_CASE("each thing that may be off spreads the makespan, by about its own size") {
    const auto step = two_stages(0, 0);
    const auto schedule = one_by_one(step.problem);
    const auto spread = [&](const Uncertainty& beyond) {
        const auto result = own(step, schedule, {1, 2000, beyond});
        return std::log(static_cast<double>(result.p90.count()) / static_cast<double>(result.p10.count())) / 2.563;
    };
    CHECK(spread(none) == 0);
    // Half of the makespan is each module's and each rank's; of 16 tasks of two lengths each.
    CHECK(spread(only(&Uncertainty::module)) == doctest::Approx(0.1 / std::sqrt(2)).epsilon(0.06));
    CHECK(spread(only(&Uncertainty::rank)) == doctest::Approx(0.1 / std::sqrt(2)).epsilon(0.06));
    CHECK(spread(only(&Uncertainty::task)) == doctest::Approx(0.1 * std::sqrt(8 * (1 + 4)) / 24).epsilon(0.06));
    CHECK(spread(only(&Uncertainty::schedule)) == doctest::Approx(0.1).epsilon(0.06));
    CHECK(spread(only(&Uncertainty::transfer)) == 0);  // there are none
    CHECK(spread(only(&Uncertainty::activations)) == 0);
}

TEST_CASE("transfers that take longer lengthen the schedules that wait for them") {
    auto step = two_stages(0, 0);
    for (Edge& edge : step.problem.edges)
        if (step.problem.tasks[index(edge.from)].rank != step.problem.tasks[index(edge.to)].rank) {
            edge.lag = Duration{5'000};
            step.transfers.push_back({static_cast<std::size_t>(&edge - step.problem.edges.data()), {}, 0, 0, {}, 0.2});
        }
    const auto schedule = one_by_one(step.problem);
    const auto result = own(step, schedule, {1, 2000, only(&Uncertainty::transfer, 0.15)});
    // 4 microbatches of 60 us and two transfers of 5 us
    CHECK(result.p50.count() == doctest::Approx(280'000).epsilon(0.002));
    const double sigma = std::hypot(0.15, 0.2 / 1.645);
    CHECK(result.p90.count() == doctest::Approx(240'000 + 40'000 * std::exp(1.2816 * sigma)).epsilon(0.003));
    CHECK(result.p10.count() == doctest::Approx(240'000 + 40'000 * std::exp(-1.2816 * sigma)).epsilon(0.003));
}

TEST_CASE("memory is exceeded in the draws in which activations outgrow what is free, and never with headroom") {
    auto step = two_stages(0, 0);
    for (Pair& pair : step.problem.pairs) {
        Mode& mode = pair.modes.front();
        mode.held = Bytes{1'000'000};
        apply(step.problem.tasks[index(pair.forward)], costs_in(pair, mode)[0]);
        apply(step.problem.tasks[index(pair.backward)], costs_in(pair, mode)[1]);
    }
    const auto schedule = by("1f1b", step.problem);
    const auto full = replay(step.problem, schedule).peak;
    const auto exceeded = [&](double capacity) {
        for (std::size_t r = 0; r < full.size(); ++r)
            step.problem.ranks[r].capacity =
                Bytes{static_cast<std::int64_t>(static_cast<double>(full[r].count) * capacity)};
        return own(step, schedule, {}).out_of_memory;
    };
    CHECK(exceeded(1.05) == 0);
    // Two modules, each on a rank of its own: three in four draws at least one is larger.
    CHECK(exceeded(1) > 130);
    CHECK(exceeded(1) < 170);
    // A plan may keep something free below what its ranks may hold.
    const Bytes more{std::max(full[0], full[1]).count * 105 / 100};
    CHECK(own(step, schedule, {.memory = more}).out_of_memory == 0);
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
            for (Edge& edge : other.edges) edge.lag *= 3;
            CHECK(order.makespan(durations, ends, 3) == replay(other, schedule).makespan);
        }
    }
}
