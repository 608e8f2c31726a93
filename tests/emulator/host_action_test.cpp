// What a task costs beside its kernels: the host's action, and what a backward in two parts reads twice.
#include "emulator/pricing/price.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/search/policies.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;

namespace {

constexpr Duration action{300'000};

struct Small : testing::SmallWorkload {
    explicit Small(Duration host = {}) { recipe.action = host; }

    StepProblem step() const { return require_step(build_step(input())); }
    StepInput input() const {
        auto input = SmallWorkload::input(cut("dip"));
        input.name = "small";
        return input;
    }
};

std::vector<Operator> weight_pass(const Execution& execution) {
    const auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);
    return layer_operators(network, {{4096}}, {.tp = 2}, PassKind::weight_gradient, 0, execution);
}

}  // namespace

TEST_CASE("every task takes the host's action once, and so do both parts of a split backward") {
    const auto without = Small().step(), with = Small(action).step();
    REQUIRE(with.problem.tasks.size() == without.problem.tasks.size());
    for (std::size_t i = 0; i < with.problem.tasks.size(); ++i) {
        CHECK(with.problem.tasks[i].duration == without.problem.tasks[i].duration + action);
        CHECK(with.cost_of(i).time == with.problem.tasks[i].duration);
        CHECK(with.cost_of(i).exposed[static_cast<std::size_t>(Stream::host)] == action);
    }
    for (std::size_t k = 0; k < with.problem.pairs.size(); ++k) {
        const auto &modes = with.problem.pairs[k].modes, &usual = without.problem.pairs[k].modes;
        for (std::size_t m = 0; m < modes.size(); ++m) {
            CHECK(modes[m].forward == usual[m].forward + action);
            CHECK(modes[m].backward == usual[m].backward + action);
        }
        const auto &split = with.split[k].modes, &usual_split = without.split[k].modes;
        REQUIRE(split.size() == usual_split.size());
        for (std::size_t m = 0; m < split.size(); ++m) {
            CHECK(split[m].backward == usual_split[m].backward + action);
            CHECK(split[m].weight == usual_split[m].weight + action);
        }
    }
    // Transfers wait for no action of their own.
    REQUIRE(with.problem.edges.size() == without.problem.edges.size());
    for (std::size_t e = 0; e < with.problem.edges.size(); ++e)
        CHECK(with.problem.edges[e].lag == without.problem.edges[e].lag);
}

TEST_CASE("a rank's actions are time of its host, whole or split") {
    const Small setup(action);
    const auto input = setup.input();
    const auto whole = require_step(build_step(input));
    const auto split = require_step(split_backwards(whole, splittable(whole)));
    for (const StepProblem* step : {&whole, &split}) {
        const auto applied = search::apply_policy(step == &split ? "zb-h1" : "1f1b", Replayer(step->problem));
        if (!applied.schedule) continue;  // the policy wants another partition
        const auto emulated = emulate(input, *step, *applied.schedule);
        for (std::size_t r = 0; r < emulated.time.size(); ++r) {
            const auto tasks = static_cast<std::int64_t>(applied.schedule->order[r].size());
            CHECK(emulated.time[r].exposed[static_cast<std::size_t>(Stream::host)] == tasks * action);
        }
    }
}

TEST_CASE("W reads what norms read once more, where the recipe says so") {
    const auto again = weight_pass({}), once = weight_pass({.norms_again = false});
    REQUIRE(again.size() == once.size() + 1);
    CHECK(again.front().name == "norms again");
    // Two norms, of each the input and the output's gradient in bf16, on one of two tensor parallel GPUs.
    CHECK(std::get<costdb::Elementwise>(again.front().query).traffic == Bytes{2 * 2 * 2 * 4096 * 2048 / 2});
    const auto time = [](const std::vector<Operator>& list) { return price(list, *testing::small_costs(), {}).time; };
    CHECK(time(again) == time(once) + ask(*testing::small_costs(), again.front()).duration);

    Small setup, other;
    other.recipe.execution.norms_again = false;
    const auto with = setup.step(), without = other.step();
    for (std::size_t k = 0; k < with.split.size(); ++k)
        for (std::size_t m = 0; m < with.split[k].modes.size(); ++m) {
            CHECK(with.problem.pairs[k].modes[m].backward == without.problem.pairs[k].modes[m].backward);
            CHECK(with.split[k].modes[m].weight > without.split[k].modes[m].weight);
        }
}
