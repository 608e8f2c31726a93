// Reuse changes nothing: every model of the catalogue, under several layouts and ways to train, by blocks and kernel by
// kernel.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/layer_store.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/emulator/what_if.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;

namespace {

// Samples of all that the model reads or makes, no two alike.
std::string samples_for(const workloads::Model& model, int count) {
    const auto takes = [&](workloads::Modality modality) {
        return std::any_of(model.modules.begin(), model.modules.end(), [&](const auto& module) {
            return std::find(module.modalities.begin(), module.modalities.end(), modality) != module.modalities.end();
        });
    };
    const bool makes = std::any_of(model.modules.begin(), model.modules.end(), [](const auto& module) {
        return module.architecture.kind == workloads::ModuleKind::diffusion_transformer ||
               module.architecture.kind == workloads::ModuleKind::head;
    });
    const std::string role = makes ? R"(,"role":"target")" : "";
    std::string text;
    for (int i = 0; i < count; ++i) {
        text += fmt::format(R"({{"id":"s{}","text_tokens":{})", i, 700 + 333 * i);
        if (takes(workloads::Modality::image))
            text += fmt::format(R"(,"images":[{{"width":{},"height":448{}}}])", 224 * (1 + i % 3), role);
        if (takes(workloads::Modality::video))
            text += fmt::format(R"(,"videos":[{{"frames":{},"width":256,"height":448,"fps":16{}}}])", 17 * (1 + i % 4),
                                role);
        if (takes(workloads::Modality::audio)) text += fmt::format(R"(,"audio":[{{"seconds":{}}}])", 3 + 5 * i);
        text += "}\n";
    }
    return text;
}

// A model, some microbatches of it, and costs that know no limit of memory.
struct Setting {
    explicit Setting(const std::string& name, int samples = 12)
        : model(workloads::model(name)),
          microbatches(workloads::pack(workloads::parse_batch("batch", samples_for(model, samples), model), model)) {}

    // Points to a setup that the next call replaces.
    StepInput input(const Layout& layout, std::int64_t chunks = 1, const Recipe& recipe = {},
                    const WhatIf& what_if = {}) {
        const auto cluster = workloads::find_cluster("h100-sxm:" + std::to_string(layout.gpus()));
        setup = Setup{model, cluster, layout, testing::small_costs(), recipe, what_if};
        const auto partition = partition::partitioner("megatron").make(*setup, microbatches, chunks);
        auto result = partition::step_input(*setup, partition, partition::units(partition, model, microbatches));
        result.name = model.name;
        result.capacity = Bytes{std::int64_t{1} << 50};
        return result;
    }

    workloads::Model model;
    std::vector<workloads::Microbatch> microbatches;
    std::optional<Setup> setup;
};

void check_identity(const StepInput& input, const StepProblem& step, const Schedule& schedule) {
    const auto by_blocks = emulate(input, step, schedule);
    const auto by_kernels = emulate(input, step, schedule, {.reuse = false, .critical_path = true});
    CHECK(by_blocks.makespan == by_kernels.makespan);
    CHECK(by_blocks.step == by_kernels.step);
    CHECK(by_blocks.kernels == by_kernels.kernels);
    CHECK(by_blocks.time == by_kernels.time);
    CHECK(by_blocks.memory == by_kernels.memory);
    CHECK(by_blocks.critical == by_kernels.critical);
    // The report's parts are the whole.
    Duration path{};
    for (const CriticalPart& part : by_blocks.critical) path += part.time;
    CHECK(path == by_blocks.step);
    for (const RankTime& rank : by_blocks.time) {
        CHECK(rank.total() == by_blocks.step);
        CHECK(rank.bubble >= Duration{0});
        CHECK(rank.compute >= Duration{0});
    }
    for (const RankMemory& rank : by_blocks.memory)
        CHECK(rank.peak == rank.fixed.total() + rank.activations + rank.transient);
    const auto replay = schedule::replay(step.problem, schedule);
    if (input.setup->recipe.bucket == Bytes{}) CHECK(by_blocks.makespan == replay.makespan);
    for (std::size_t r = 0; r < by_blocks.memory.size(); ++r) CHECK(by_blocks.memory[r].peak == replay.peak[r]);
}

void check_identity(const StepInput& input, const std::string& policy = "1f1b") {
    const auto step = require_step(build_step(input));
    const auto applied = search::apply_policy(policy, Replayer(step.problem));
    REQUIRE_MESSAGE(applied.schedule, applied.why_not);
    check_identity(input, step, *applied.schedule);
}

// Every second pass copies its activations to the host, whole backwards and split ones.
void check_identity_of_some_copies(StepInput input, std::vector<Recompute> menu) {
    input.modes = std::move(menu);
    const auto whole = require_step(build_step(input));
    const auto split = require_step(split_backwards(whole, splittable(whole)));
    for (const auto& [step, policy] : {std::pair(&whole, "1f1b"), std::pair(&split, "zb-h1")}) {
        auto applied = search::apply_policy(policy, Replayer(step->problem));
        REQUIRE_MESSAGE(applied.schedule, applied.why_not);
        for (std::size_t k = 0; k < step->problem.pairs.size(); ++k)
            applied.schedule->mode[k] = static_cast<std::uint32_t>(k % 2);
        check_identity(input, *step, *applied.schedule);
    }
}

// One setting for the even ranks, another for the odd ones.
void check_identity_by_rank(StepInput input) {
    input.modes = {Recompute::none, Recompute::selective, Recompute::blocks(2), Recompute::full};
    const auto step = require_step(build_step(input));
    auto applied = search::apply_policy("interleaved", Replayer(step.problem));
    REQUIRE_MESSAGE(applied.schedule, applied.why_not);
    for (const std::uint32_t even : {0U, 1U, 3U}) {
        for (std::size_t k = 0; k < step.problem.pairs.size(); ++k)
            applied.schedule->mode[k] =
                index(step.problem.tasks[index(step.problem.pairs[k].forward)].rank) % 2 == 0 ? even : 2;
        check_identity(input, step, *applied.schedule);
    }
}

}  // namespace

TEST_CASE("every model of the catalogue takes the same time and memory by blocks and kernel by kernel") {
    const std::vector<Layout> layouts{{.tp = 1, .pp = 2, .dp = 1}, {.tp = 4, .pp = 4, .dp = 2},
                                      {.tp = 8, .pp = 3, .dp = 4}, {.tp = 2, .pp = 1, .dp = 8},
                                      {.tp = 2, .pp = 2, .dp = 2}, {.tp = 1, .pp = 4, .dp = 2},
                                      {.tp = 1, .pp = 1, .dp = 1}};
    const std::vector<Layout> spread{{.tp = 2, .pp = 2, .dp = 2, .cp = 2, .ep = 2},
                                     {.tp = 1, .pp = 2, .dp = 2, .cp = 2, .context = ContextParallel::ring}};
    const auto names = workloads::model_names();
    const auto stride = testing::full_or_short<std::size_t>(1, 7);
    for (std::size_t n = 0; n < names.size(); n += stride) {
        const std::string& name = names[n];
        CAPTURE(name);
        Setting setting(name);
        std::size_t tried = 0;
        for (const Layout& layout : layouts) {
            if (tried == 4 || conflict(layout, setting.model)) continue;
            CAPTURE(layout.tp);
            check_identity(setting.input(layout));
            ++tried;
        }
        CHECK(tried >= 3);
        for (const Layout& layout : spread)
            if (!conflict(layout, setting.model)) check_identity(setting.input(layout));
    }
}

TEST_CASE("layers without attention run nothing again where core attention alone does") {
    for (const std::string name : {"qwen3.5-27b-llm", "nemotron-nano-9b-v2"}) {
        CAPTURE(name);
        Setting setting(name);
        StepInput input = setting.input({.tp = 1, .pp = 2, .dp = 1});
        input.modes = {Recompute::core_attention};
        check_identity(input);
    }
}

TEST_CASE("reuse changes nothing under any way to train, cut or schedule") {
    const Layout layout{.tp = 4, .pp = 2, .dp = 4};
    for (const std::string name : {"dip-vlm-s", "dip-t2v-s"}) {
        CAPTURE(name);
        Setting setting(name, 20);
        std::size_t number = 0;
        const auto stride = testing::full_or_short<std::size_t>(1, 5);  // meets every recipe, and every recomputation
        for (const Recipe& recipe :
             {Recipe{.zero = 0}, Recipe{.zero = 2}, Recipe{.zero = 3, .overlap_slowdown = 1.1},
              Recipe{.bucket = Bytes{200'000'000}, .overlap_slowdown = 1.05}, Recipe{.launch = Duration{30'000}},
              Recipe{.zero = 3, .launch = Duration{200'000}}, Recipe{.action = Duration{300'000}},
              Recipe{.bucket = Bytes{200'000'000}, .action = Duration{300'000}},
              Recipe{.zero = 2, .launch = Duration{30'000}, .action = Duration{300'000}}})
            for (const Recompute recompute : {Recompute::none, Recompute::half, Recompute::full, Recompute::selective,
                                              Recompute::second_products, Recompute::offload, Recompute::blocks(3)}) {
                if (number++ % stride != 0) continue;
                CAPTURE(recipe.zero);
                auto input = setting.input(layout, 1, recipe);
                input.modes = {recompute};
                check_identity(input);
            }
        check_identity(setting.input(layout, 2), "interleaved");
        check_identity_by_rank(setting.input(layout, 2));
        const Recipe linked{.host_link = {4'000'000'000'000}};
        check_identity_of_some_copies(setting.input(layout, 1, linked), {Recompute::none, Recompute::offload});
        check_identity_of_some_copies(setting.input(layout, 1, linked), {Recompute::offload, Recompute::full});
        const WhatIf what_if{.devices = {{.rank = 1, .replica = {}, .factor = 1.3}},
                             .links = {{"tensor", 2.0}, {"pipeline", 3.0}, {"data", 0.5}},
                             .operators = {{"attention", 0.7}},
                             .modules = {}};
        check_identity(setting.input(layout, 1, {}, what_if));
        for (const Recipe& recipe : {Recipe{}, Recipe{.split_slowdown = 1.2}, Recipe{.action = Duration{300'000}}}) {
            const auto split_input = setting.input(layout, 1, recipe);
            const auto whole = require_step(build_step(split_input));
            const auto split = require_step(split_backwards(whole, splittable(whole)));
            const auto applied = search::apply_policy("zb-h1", Replayer(split.problem));
            REQUIRE(applied.schedule);
            check_identity(split_input, split, *applied.schedule);
        }
    }
}
