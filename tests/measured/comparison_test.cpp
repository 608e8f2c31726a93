// Recorded runs of a small pipeline beside its plan.
#include "pipeweaver/measured/comparison.hpp"

#include "measured/factors.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace pipeweaver;
using namespace pipeweaver::measured;
using namespace pipeweaver::schedule;
using namespace std::chrono_literals;

namespace {

constexpr Duration lag = 20us;

// A chain of a stage for each rank under 1F1B: "vit" on the first, "llm" on the others.
Solved pipeline(std::uint32_t ranks, std::int64_t microbatches) {
    Solved solved;
    Problem& problem = solved.file.problem;
    problem.name = "chain";
    for (std::uint32_t r = 0; r < ranks; ++r) {
        problem.ranks.push_back({{}, 0_B, 5us});
        problem.stages.push_back({r, RankId{r}, {{r == 0 ? "vit" : "llm", 0, 4}}});
    }
    const auto id = [&](std::int64_t m, std::int64_t s, bool backward) {
        return TaskId{static_cast<std::uint32_t>((m * ranks + s) * 2 + (backward ? 1 : 0))};
    };
    for (std::int64_t m = 0; m < microbatches; ++m)
        for (std::int64_t s = 0; s < ranks; ++s)
            for (const bool backward : {false, true})
                problem.tasks.push_back({RankId{static_cast<std::uint32_t>(s)},
                                         backward ? TaskKind::backward : TaskKind::forward,
                                         (backward ? 2 : 1) * (s == 0 ? 900us : 1000us), 0_B, 0_B,
                                         fmt::format("m{}.s{}.{}", m, s, backward ? 'B' : 'F'), s, m, 0, "chain"});
    for (std::int64_t m = 0; m < microbatches; ++m)
        for (std::int64_t s = 0; s < ranks; ++s) {
            if (s + 1 < ranks) problem.edges.push_back({id(m, s, false), id(m, s + 1, false), lag});
            if (s + 1 < ranks) problem.edges.push_back({id(m, s + 1, true), id(m, s, true), lag});
            if (s + 1 == ranks) problem.edges.push_back({id(m, s, false), id(m, s, true), 0us});
        }
    for (std::int64_t s = 0; s < ranks; ++s) {
        auto& order = solved.schedule.order.emplace_back();
        const std::int64_t ahead = std::min<std::int64_t>(ranks - s, microbatches);
        for (std::int64_t m = 0; m < ahead; ++m) order.push_back(id(m, s, false));
        for (std::int64_t m = 0; m < microbatches; ++m) {
            order.push_back(id(m, s, true));
            if (m + ahead < microbatches) order.push_back(id(m + ahead, s, false));
        }
    }
    return solved;
}

// How long a task takes in a step.
using Truth = std::function<Duration(const Task&, std::size_t step)>;

// What the ranks would record, each by a clock of its own: a replay under the truth with transfers of `takes`.
std::vector<Recording> recorded(const Solved& solved, std::size_t steps, const Truth& truth, Duration takes = lag) {
    const std::size_t ranks = solved.file.problem.ranks.size();
    std::vector<Recording> all(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
        all[r].name = fmt::format("timings-{}.json", r);
        all[r].rank = static_cast<std::int64_t>(r);
        all[r].problem = solved.file.problem.name;
        all[r].steps.resize(steps);
    }
    for (std::size_t s = 0; s < steps; ++s) {
        Problem real = solved.file.problem;
        for (Task& task : real.tasks) task.duration = truth(task, s);
        for (Edge& edge : real.edges)
            if (edge.lag > 0ns) edge.lag = takes;
        const auto run = replay(real, solved.schedule);
        REQUIRE(run.outcome == Outcome::completed);
        for (std::size_t t = 0; t < real.tasks.size(); ++t) {
            const Task& task = real.tasks[t];
            const std::size_t rank = index(task.rank);
            const Duration at = run.start[t] + 1h * static_cast<int>(rank) + 1ms * static_cast<int>(s);
            all[rank].steps[s].passes.push_back(
                {letter(task.kind), *task.stage, *task.microbatch, *task.item, {at, at + task.duration}});
        }
    }
    return all;
}

Comparison compared(const Solved& solved, const std::vector<Recording>& recordings) {
    const auto planned = planned_of(solved, "plan");
    return compare(planned, join(planned, recordings));
}

const auto as_planned = [](const Task& task, std::size_t) { return task.duration; };

double noise(Random& random, double deviation) {  // sum of twelve: normal enough
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random.uniform();
    return 1 + deviation * sum;
}

std::string why_refused(const Solved& solved, const std::vector<Recording>& recordings) {
    try {
        static_cast<void>(compared(solved, recordings));
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a run that did as planned differs in nothing") {
    const auto solved = pipeline(4, 6);

    const auto all = compared(solved, recorded(solved, 1, as_planned));

    CHECK(all.measured == all.planned);
    CHECK(all.run == 0ns);
    CHECK(all.wait == 0ns);
    for (const RankTimes& rank : all.ranks) CHECK(rank.measured_wait == rank.planned_wait);
    for (std::size_t r = 0; r < 4; ++r) {
        REQUIRE(all.clocks.uncertainty[r]);
        CHECK(*all.clocks.uncertainty[r] <= 4 * lag);
    }
}

TEST_CASE("a module that is slower is told by its passes, slower transfers by waiting") {
    const auto solved = pipeline(4, 6);
    const auto truth = [](const Task& task, std::size_t) {
        return *task.stage == 0 ? task.duration * 13 / 10 : task.duration;
    };

    const auto slower = compared(solved, recorded(solved, 1, truth));
    const auto later = compared(solved, recorded(solved, 1, as_planned, 150us));

    CHECK(slower.run > 0ns);
    CHECK(slower.wait == 0ns);
    REQUIRE(slower.groups.size() == 4);
    CHECK(slower.groups[0].modules == "vit");
    CHECK(slower.groups[0].kind == 'B');
    CHECK(slower.groups[0].measured * 10 == slower.groups[0].planned * 13);
    CHECK(solved.file.problem.tasks[slower.tasks[0].task].stage == 0);
    CHECK(later.run == 0ns);
    CHECK(later.wait > 0ns);
    for (const RankTimes& rank : later.ranks) CHECK_FALSE(rank.slow);
}

TEST_CASE("whatever the times, parts add up to the difference and ranks to the step") {
    const auto solved = pipeline(5, 8);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        Random random(seed);
        const auto truth = [&](const Task& task, std::size_t) {
            return Duration{
                static_cast<std::int64_t>(static_cast<double>(task.duration.count()) * (0.5 + random.uniform()))};
        };

        const auto all = compared(solved, recorded(solved, 3, truth, 70us));

        CHECK(all.measured - all.planned == all.run + all.wait);
        Duration parts{}, busy{};
        for (const GroupError& one : all.groups) parts += one.on_step;
        CHECK(parts == all.run);
        for (const RankTimes& rank : all.ranks) {
            CHECK(rank.planned_busy + rank.planned_wait == all.planned);
            CHECK(rank.measured_busy + rank.measured_wait == all.measured);
            busy += rank.measured_busy;
        }
        for (const TaskError& one : all.tasks) busy -= one.measured;
        CHECK(busy == 0ns);
    }
}

TEST_CASE("a rank that is 10 % slow is named within five steps, and no other, with 3 % noise on every pass") {
    const auto solved = pipeline(6, 8);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Random random(seed);
        const auto slow = static_cast<std::int64_t>(1 + random.below(5));
        const auto truth = [&](const Task& task, std::size_t) {
            const double factor = noise(random, 0.03) * (*task.stage == slow ? 1.1 : 1.0);
            return Duration{std::llround(static_cast<double>(task.duration.count()) * factor)};
        };

        const auto all = compared(solved, recorded(solved, 5, truth));

        for (std::size_t r = 0; r < all.ranks.size(); ++r)
            CHECK(all.ranks[r].slow == (static_cast<std::int64_t>(r) == slow));
        CHECK_FALSE(all.ranks[0].factor);  // the only one with "vit"
        CHECK(std::abs(*all.ranks[static_cast<std::size_t>(slow)].factor - 1.1) < 0.02);
    }
}

TEST_CASE("a backward that ran whole stands for the two parts that the plan has") {
    auto solved = pipeline(2, 1);
    Problem& problem = solved.file.problem;
    problem.tasks[3].kind = TaskKind::input_gradient;
    problem.tasks[3].duration = 500us;
    problem.tasks.push_back({RankId{1}, TaskKind::weight_gradient, 1500us, 0_B, 0_B, "m0.s1.W", 1, 0, 0, "chain"});
    solved.schedule.order[1].push_back(TaskId{4});
    auto recordings = recorded(solved, 1, as_planned);
    auto& passes = recordings[1].steps[0].passes;
    const auto input = std::find_if(passes.begin(), passes.end(), [](const auto& one) { return one.kind == 'I'; });
    input->kind = 'B';
    input->time.end = input->time.start + 4ms;
    std::erase_if(passes, [](const auto& one) { return one.kind == 'W'; });

    const auto planned = planned_of(solved, "plan");
    const auto run = join(planned, recordings);

    CHECK(run.steps[0].task[3].length() == 1ms);
    CHECK(run.steps[0].task[4].length() == 3ms);
}

TEST_CASE("recordings of another run are refused with file and pass") {
    const auto solved = pipeline(3, 4);
    const auto good = recorded(solved, 2, as_planned);
    const auto broken = [&](const std::function<void(std::vector<Recording>&)>& change) {
        auto recordings = good;
        change(recordings);
        return why_refused(solved, recordings);
    };

    CHECK(broken([](auto&) {}).empty());
    CHECK(broken([](auto& all) { all.pop_back(); }) == "plan: nothing recorded is of rank 2; the plan has ranks 0-2");
    CHECK(broken([](auto& all) { all.push_back(all[1]); }) == "timings-1.json: is of rank 1, as timings-1.json is");
    CHECK(broken([](auto& all) { all[1].problem = "other"; }) ==
          "timings-1.json: problem: is a run of 'other', the plan is 'chain'");
    CHECK(broken([](auto& all) { all[1].replica = 1; }) ==
          "timings-1.json: replica: is 1, recordings of replica 0 are compared");
    CHECK(broken([](auto& all) { all[1].steps.pop_back(); }) ==
          "timings-1.json: holds 1 steps, timings-0.json holds 2");
    CHECK(broken([](auto& all) { all[2].steps[0].passes[0].microbatch = 4; }) ==
          "timings-2.json: ran microbatch 4, the plan has microbatches 0-3: it is another run's");
    CHECK(broken([](auto& all) { all[2].steps[0].passes[0].stage = 7; }) ==
          "timings-2.json: ran stage 7, the plan has stages 0-2");
    CHECK(broken([](auto& all) { all[2].steps[0].passes[0].stage = 1; }) ==
          "timings-2.json: ran stages that the plan has on ranks 1, 2: a file is of one rank");
    CHECK(broken([](auto& all) { all[2].steps[1].passes.pop_back(); }) ==
          "timings-2.json: step 1: B of stage 2, microbatch 3 is missing, which the plan has");
    CHECK(broken([](auto& all) { all[2].steps[1].passes[1].kind = 'I'; }) ==
          "timings-2.json: step 1: ran I of stage 2, microbatch 0, which the plan does not have: it is another run's");
    CHECK(broken([](auto& all) { all[2].steps[0].passes.push_back(all[2].steps[0].passes[1]); }) ==
          "timings-2.json: step 0: B of stage 2, microbatch 0 ran twice");
    CHECK(
        broken([](auto& all) { std::swap(all[0].steps[0].passes[1].time, all[0].steps[0].passes[7].time); }) ==
        "timings-0.json: step 0: ran 'm3.s0.F' before 'm0.s0.B', the plan has them the other way round: it is the run "
        "of another schedule");
    const auto contradicting = broken([](auto& all) {
        for (auto& pass : all[1].steps[0].passes)
            if (pass.microbatch == 0 && pass.kind == 'F') pass.time = {pass.time.start - 1h, pass.time.end - 1h};
    });
    CHECK(contradicting.starts_with("plan: step 0: whatever the clocks of the ranks, some message arrived"));
}

TEST_CASE("modules that share a stage get factors of their own, and a slow rank is none of theirs") {
    const auto solved = pipeline(5, 8);
    const auto planned = planned_of(solved, "plan");
    const auto& tasks = planned.problem.tasks;
    std::vector<Share> shares;
    for (const bool backward : {false, true})  // the first stage is six tenths vit, four tenths llm
        for (const bool vit : {true, false}) {
            Share share{vit ? "vit" : "llm", backward, {}};
            for (const Task& task : tasks) {
                const bool own = (task.kind == TaskKind::backward) == backward;
                const int tenths = *task.stage == 0 ? (vit ? 6 : 4) : (vit ? 0 : 10);
                share.of_task.push_back(own ? task.duration * tenths / 10 : 0ns);
            }
            shares.push_back(std::move(share));
        }
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        Random random(seed);
        const auto truth = [&](const Task& task, std::size_t) {
            const double slower = *task.stage == 0 ? 1 + 0.6 * 0.3 : *task.stage == 3 ? 1.15 : 1.0;
            return Duration{std::llround(static_cast<double>(task.duration.count()) * slower * noise(random, 0.01))};
        };

        const auto factors = fit_factors(planned, join(planned, recorded(solved, 5, truth)), shares);

        CHECK(std::abs(factors[0] - 1.3) < 0.03);  // vit forward
        CHECK(std::abs(factors[1] - 1.0) < 0.02);  // llm forward
        CHECK(std::abs(factors[2] - 1.3) < 0.03);
        CHECK(std::abs(factors[3] - 1.0) < 0.02);
    }
}
