// Which rung is advised: what it gains, and in how many draws of wrong costs.
#include "planner/ladder/worth.hpp"

#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/planner/ladder.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/times.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

// The small request as megatron launches it; no time is left for what else a ladder begins with.
Rung launched_rung(const char* name, const Request& request, const std::string& recompute) {
    const auto start = begin_ladder({request}, {}, parse_now("first-stage,1f1b," + recompute, ""), in_order,
                                    testing::after_questions(0));
    Rung rung = *start.now;
    rung.name = name;
    return rung;
}

Request request_for_megatron() {
    Request request = testing::small_request(2);
    request.job.target = "megatron";
    return request;
}

RungSchedules of_launch(const Rung& rung) { return schedules_of(*rung.launched, target("megatron")); }

// The rung with all its passes so many times as long.
RungSchedules made_longer(RungSchedules all, double factor) {
    for (auto& step : all.steps) {
        for (auto& pair : step.problem.pairs)
            for (auto& mode : pair.modes)
                for (Duration* one : {&mode.forward, &mode.backward, &mode.weight})
                    *one = Duration{std::llround(static_cast<double>(one->count()) * factor)};
        for (auto& task : step.problem.tasks)
            task.duration = Duration{std::llround(static_cast<double>(task.duration.count()) * factor)};
    }
    return all;
}

// What is said of a second rung whose passes are `factor` times as short as those of what is run now.
std::vector<Rung> advised_of(double factor, std::size_t& advised) {
    const Request request = request_for_megatron();
    std::vector<Rung> rungs{launched_rung("now", request, "none"), launched_rung("flags", request, "full")};
    rungs[1].step = Duration{std::llround(static_cast<double>(rungs[0].step.count()) / factor)};
    const RungSchedules now = of_launch(rungs[0]);
    advised = advise(
        rungs, "megatron", [&](const Rung& rung) { return rung.name == "now" ? now : made_longer(now, 1 / factor); }, 1,
        in_order);
    return rungs;
}

}  // namespace

TEST_CASE("a rung's schedules are those of its slowest replicas, as long as its step without the optimizer") {
    const Rung rung = launched_rung("now", request_for_megatron(), "full");
    const RungSchedules own = of_launch(rung);
    REQUIRE(own.steps.size() == 2);
    CHECK(emulator::replay_on_ports(own.steps[0], own.schedules[0]).replay.makespan == rung.launched->makespan);
    CHECK(emulator::replay_on_ports(own.steps[1], own.schedules[1]).replay.makespan <= rung.launched->makespan);
    CHECK(own.side().size() == 2);
}

TEST_CASE("a gain below two per cent is not worth a change, and no draws are made for it") {
    std::size_t advised = 1;
    const auto rungs = advised_of(1.019, advised);
    CHECK(advised == 0);
    REQUIRE(rungs[1].worth);
    CHECK(!rungs[1].worth->is_enough);
    CHECK(rungs[1].worth->draws == 0);
    CHECK(rungs[1].worth->over == "now");
    CHECK(rungs[1].worth->gain == doctest::Approx(1.019));
    CHECK(!rungs[0].worth);
}

TEST_CASE("a gain that wrong costs may take away is not worth a change, a large one is") {
    std::size_t advised = 1;
    const auto small = advised_of(1.021, advised);
    CHECK(advised == 0);
    CHECK(small[1].worth->draws == perturbed_replays);
    CHECK(small[1].worth->wins < margins.worth_draws * perturbed_replays);
    CHECK(!small[1].worth->is_enough);

    const auto large = advised_of(1.15, advised);
    CHECK(advised == 1);
    CHECK(large[1].worth->wins >= margins.worth_draws * perturbed_replays);
    CHECK(large[1].worth->is_enough);
}

TEST_CASE("one way on other microbatches has what is off of a schedule in common") {
    const Request request = request_for_megatron();
    const Rung now = launched_rung("now", request, "none");
    Rung data = now;
    data.name = "data";
    const RungSchedules before = of_launch(now), after = made_longer(before, 1 / 1.025);
    CHECK(worth_over(now, before, data, after, 1, in_order).wins == perturbed_replays);
    data.launched = launched_rung("data", request, "full").launched;
    CHECK(worth_over(now, before, data, after, 1, in_order).wins < perturbed_replays);
}

TEST_CASE("a rung of another runtime, or that gains nothing, is never advised") {
    const Request request = request_for_megatron();
    std::vector<Rung> rungs(3, launched_rung("now", request, "none"));
    rungs[1].why_nothing = "none is faster";
    rungs[2].target = "torch-actions";
    rungs[2].step = rungs[0].step / 2;
    CHECK(advise(rungs, "megatron", of_launch, 1, in_order) == 0);
    CHECK(!rungs[1].worth);
    CHECK(!rungs[2].worth);
}

TEST_CASE("steps are compared whole where the optimizer is in the tails") {
    const Request request = request_for_megatron();
    const RungSchedules without = of_launch(launched_rung("now", request, "none"));
    const RungSchedules with = RungSchedules(without).with_optimizer();
    REQUIRE(with.steps.size() == without.steps.size());
    for (std::size_t i = 0; i < with.steps.size(); ++i) {
        REQUIRE(with.steps[i].optimizer > Duration{0});
        for (std::size_t r = 0; r < with.steps[i].problem.ranks.size(); ++r)
            CHECK(with.steps[i].problem.ranks[r].tail ==
                  without.steps[i].problem.ranks[r].tail + with.steps[i].optimizer);
    }
}
