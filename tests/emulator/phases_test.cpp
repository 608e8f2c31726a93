// Encoders data parallel before and after a pipeline: what they hold, exchange and wait for.
#include "emulator/step/phases.hpp"

#include "emulator/pricing/stage_memory.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/small_workload.hpp"
#include "tests/support/verified.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;

namespace {

struct ThreePhase : testing::SmallWorkload {
    explicit ThreePhase(const Layout& in = {.tp = 2, .pp = 2, .dp = 2}, const std::vector<int>& images = {5, 0, 2})
        : testing::SmallWorkload(in, images) {}

    StepInput input(std::int64_t chunks = 1) const {
        auto result = testing::SmallWorkload::input(cut("three-phase", chunks));
        result.name = "three-phase";
        result.priced_split = false;
        result.modes = {Recompute::none};
        return result;
    }
};

StepProblem built(const StepInput& input) { return require_step(build_step(input)); }

// Tasks of the phases by rank, forwards then backwards.
std::vector<const Task*> phase_tasks(const StepProblem& step) {
    std::vector<const Task*> tasks;
    for (const PhasePass& phase : step.phases) tasks.push_back(&step.problem.tasks[index(phase.task)]);
    return tasks;
}

void check_both_ways(const StepInput& input, const StepProblem& step, const std::string& policy) {
    const auto applied = search::apply_policy(policy, Replayer(step.problem));
    REQUIRE_MESSAGE(applied.schedule, applied.why_not);
    const auto by_passes = emulate(input, step, *applied.schedule);
    const auto by_kernels = emulate(input, step, *applied.schedule, {.reuse = false, .critical_path = true});
    CHECK(by_passes.step == by_kernels.step);
    CHECK(by_passes.time == by_kernels.time);
    CHECK(by_passes.memory == by_kernels.memory);
    CHECK(by_passes.critical == by_kernels.critical);
    CHECK(by_passes.kernels == by_kernels.kernels);
}

}  // namespace

TEST_CASE("encoders lie whole on every GPU, their optimizer state over all GPUs") {
    const ThreePhase setup;
    const auto input = setup.input();
    auto chain = input;
    chain.layouts.clear();
    const auto all = static_memory(input), without = static_memory(chain);
    std::int64_t parameters = workloads::projector_parameters(setup.model.edges.front());
    for (std::int64_t i = 0; i < 6; ++i)
        parameters += workloads::layer_parameters(setup.model.modules[0].architecture, i);
    for (const std::size_t r : {0U, 1U}) {
        CHECK(all[r].weights - without[r].weights == Bytes{2 * parameters});
        CHECK(all[r].gradients - without[r].gradients == Bytes{4 * parameters});
        CHECK(all[r].optimizer - without[r].optimizer == Bytes{(12 * parameters + 7) / 8});
    }
}

TEST_CASE("items go to GPUs longest first, and a rank's phase takes as long as its slowest GPU") {
    // Seven images on four GPUs: two each on three of them, alike.
    const ThreePhase setup;
    const auto input = setup.input();
    const auto step = built(input);
    REQUIRE(step.phases.size() == 4);
    DealtCosts costs(input);
    const std::vector<DealtItem> two{{0, 0, 0}, {0, 0, 1}};
    for (const Task* task : phase_tasks(step)) {
        const auto pass = task->kind == TaskKind::forward ? PassKind::forward : PassKind::backward;
        CHECK(task->duration == costs.cost(task->rank, two, pass, Recompute::none).time);
        CHECK(task->module == "vit");
        CHECK(!task->stage);
    }
    for (const PhasePass& phase : step.phases) CHECK(phase.longest.front().size() == 2);
    // Held from the forward to the backward: two images.
    const auto one =
        pass_memory(input, costs.stage(two.front(), RankId{0}), costs.shapes(two.front()), Recompute::none, true);
    const Pair& pair = step.problem.pairs.back();
    CHECK(pair.modes.front().held == 2 * one.held);
    CHECK(pair.modes.front().transient == one.transient);
}

TEST_CASE("the chain begins when all outputs have arrived, and the encoders' backward ends the step") {
    const ThreePhase setup;
    const auto input = setup.input(2);
    const auto step = built(input);
    // 7 images of 64 tokens of width 2048 in bf16 on two GPUs.
    const auto sent = exchange_of(input);
    REQUIRE(sent);
    CHECK(sent->message == Bytes{7 * 64 * 2048 * 2 / 2});
    const Duration lag = setup.costs->cost(*sent).duration;
    const auto applied = search::apply_policy("interleaved", Replayer(step.problem));
    REQUIRE(applied.schedule);
    const auto start = [&](TaskId task) { return applied.replay.start[index(task)]; };
    const auto end = [&](TaskId task) { return start(task) + step.problem.tasks[index(task)].duration; };
    Duration forwards{}, backwards{}, first = Duration::max();
    for (std::uint32_t i = 0; i < step.problem.tasks.size(); ++i) {
        const Task& task = step.problem.tasks[i];
        if (!task.stage && task.kind == TaskKind::forward) forwards = std::max(forwards, end(TaskId{i}));
        if (task.stage && task.kind == TaskKind::backward) backwards = std::max(backwards, end(TaskId{i}));
        if (task.stage) first = std::min(first, start(TaskId{i}));
    }
    CHECK(first == forwards + lag);
    for (const PhasePass& phase : step.phases) {
        if (step.problem.tasks[index(phase.task)].kind == TaskKind::backward)
            CHECK(start(phase.task) == backwards + lag);
    }
    for (const auto& order : applied.schedule->order) {
        CHECK(!step.problem.tasks[index(order.front())].stage);
        CHECK(!step.problem.tasks[index(order.back())].stage);
    }
    search::Found found =
        search::as_found("interleaved", search::apply_policy("interleaved", Replayer(step.problem)), {});
    testing::check_verified(step.problem, found);
}

TEST_CASE("a frozen encoder has no third phase, with a trained projector it has the projector's") {
    ThreePhase setup;
    setup.model.modules[0].trainable = false;
    CHECK(built(setup.input()).phases.size() == 2);
    setup.model.edges.front().projector_trainable = true;
    const auto input = setup.input();
    const auto step = built(input);
    REQUIRE(step.phases.size() == 4);
    const auto tasks = phase_tasks(step);
    CHECK(tasks[1]->kind == TaskKind::backward);
    CHECK(10 * tasks[1]->duration < tasks[0]->duration);
    check_both_ways(input, step, "1f1b");
}

TEST_CASE("a batch without items has no phases, and a rank without items none") {
    CHECK(built(ThreePhase({.tp = 1, .pp = 2, .dp = 1}, {0, 0}).input()).phases.empty());
    CHECK(built(ThreePhase({.tp = 2, .pp = 2, .dp = 1}, {1, 0}).input()).phases.size() == 2);
}

TEST_CASE("phases take the same time and memory by passes and kernel by kernel, however it is trained") {
    for (const Recipe& recipe : {Recipe{}, Recipe{.zero = 0}, Recipe{.bucket = Bytes{20'000'000}},
                                 Recipe{.launch = Duration{30'000}}, Recipe{.action = Duration{300'000}}})
        for (const Recompute recompute :
             {Recompute::none, Recompute::half, Recompute::full, Recompute::selective, Recompute::offload}) {
            ThreePhase setup;
            setup.recipe = recipe;
            setup.what_if = {.devices = {{.rank = 1, .replica = {}, .factor = 1.3}},
                             .links = {{"tensor", 2.0}, {"pipeline", 3.0}},
                             .operators = {{"attention", 0.7}},
                             .modules = {}};
            auto input = setup.input();
            input.modes = {recompute};
            check_both_ways(input, built(input), "1f1b");
        }
}

TEST_CASE("several encoders share the GPUs of one phase") {
    ThreePhase setup;
    workloads::Module ear = setup.model.modules.front();
    ear.name = "ear";
    ear.modalities = {workloads::Modality::audio};
    setup.model.modules.insert(setup.model.modules.begin() + 1, ear);
    setup.model.edges = {{0, 2, 4, 4096, 2048}, {1, 2, 4, 4096, 2048}};
    setup.microbatches[1].items.push_back({1, 0, {workloads::Modality::audio, 64, 512, 0, false}});
    const auto input = setup.input();
    REQUIRE(phase_modules(input.layouts).size() == 2);
    const auto step = built(input);
    CHECK(phase_tasks(step).front()->module == "vit+ear");
    std::size_t ears = 0;
    for (const PhasePass& phase : step.phases)
        for (const DealtItem& item : phase.longest.front()) ears += item.phase;
    CHECK(ears >= 1);
    for (const PhasePass& phase : step.phases) CHECK(step.mix[index(phase.task)] < step.mixes.size());
    check_both_ways(input, step, "1f1b");
    // Menus of memory modes, as searches have them.
    auto menu = input;
    menu.modes = usual_modes();
    menu.priced_split = true;
    const auto several = built(menu);
    for (const auto& policy : search::policies()) {
        const auto applied = search::apply_policy(policy.name, Replayer(several.problem));
        CHECK((applied.schedule || !applied.why_not.empty()));
    }
    check_both_ways(menu, several, "1f1b");
}
