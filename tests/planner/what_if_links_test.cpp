// Factors are monotone: a step of a fixed order is never shorter where a link or what is computed is slower, and memory
// that stays free changes nothing.
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/planner/emulate_options.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

EmulateOptions options_of(const std::string& model, const std::string& dataset, const std::string& recompute) {
    EmulateOptions options;
    options.workload.model = model;
    options.workload.cluster = "h100-sxm:16";
    options.workload.dataset = dataset;
    options.workload.microbatches = 3;
    options.workload.tp.number = options.workload.pp.number = options.workload.dp.number = 2;
    options.workload.cp.number = 2;
    options.job.partition = "balanced";
    options.recompute = step_recompute_named(recompute);
    options.any_memory = true;
    return options;
}

EmulationRequest request_of(const std::string& model, const std::string& dataset, const std::string& recompute) {
    return options_of(model, dataset, recompute).request(1, in_order);
}

Duration step_with(EmulationRequest request, const emulator::WhatIf& what_if) {
    const emulator::Setup& usual = *request.job.setup;
    request.job.setup = std::make_shared<emulator::Setup>(with_recipe(usual, usual.recipe, what_if));
    return emulate(request, in_order).step;
}

// From a quarter to four times, in order.
std::vector<double> drawn_factors(std::uint64_t task, std::size_t count) {
    Random random(16, task);
    std::vector<double> factors{0.25, 4};
    while (factors.size() < count) factors.push_back(std::exp2(4 * random.uniform() - 2));
    std::sort(factors.begin(), factors.end());
    return factors;
}

}  // namespace

TEST_CASE("a step never falls when a factor slows a link, and takes longer when it slows it sixteen times") {
    const std::map<std::string, std::string> presets{{"dip-vlm-s", "vlm-mix"}, {"dip-t2v-s", "t2v-mix"}};
    std::uint64_t task = 0;
    for (const auto& preset : presets)
        for (const std::string& link : emulator::link_names()) {
            CAPTURE(preset.first);
            CAPTURE(link);
            const auto request = request_of(preset.first, preset.second, link == "copy" ? "offload" : "none");
            Duration before{};
            std::vector<Duration> steps;
            for (const double factor : drawn_factors(++task, testing::full_or_short<std::size_t>(6, 3))) {
                CAPTURE(factor);
                steps.push_back(
                    step_with(request, {.devices = {}, .links = {{link, factor}}, .operators = {}, .modules = {}}));
                CHECK(steps.back() >= before);
                before = steps.back();
            }
            CHECK(steps.back() > steps.front());
        }
}

TEST_CASE("a step never falls where a GPU, a class of operators or a module takes twice as long") {
    const auto request = request_of("dip-vlm-s", "vlm-mix", "none");
    const Duration usual = step_with(request, {});
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        emulator::WhatIf slow;
        slow.devices.push_back({.rank = rank, .replica = {}, .factor = 2});
        CHECK(step_with(request, slow) > usual);
    }
    for (const std::string name : {"gemm", "attention"}) {
        CAPTURE(name);
        emulator::WhatIf slow;
        slow.operators[name] = 2;
        CHECK(step_with(request, slow) > usual);
    }
    for (const auto& module : request.job.setup->model.modules) {
        CAPTURE(module.name);
        emulator::WhatIf slow;
        slow.modules[module.name] = 2;
        CHECK(step_with(request, slow) >= usual);
    }
}

TEST_CASE("memory that stays free changes no step whose order and recomputation are said") {
    std::vector<Duration> steps;
    for (const std::int64_t headroom : {0, 30'000, 200'000}) {
        EmulateOptions options = options_of("dip-vlm-s", "vlm-mix", "full");
        options.workload.headroom.parts_per_million = headroom;
        steps.push_back(emulate(options.request(1, in_order), in_order).step);
    }
    CHECK(steps == std::vector(3, steps.front()));
}
