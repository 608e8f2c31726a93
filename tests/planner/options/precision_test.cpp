// What other formats would change: the greedy choice against every choice, and a step's answers.
#include "pipeweaver/planner/precision.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

using Counts = std::vector<std::int64_t>;

// Rows of layers on ranks one behind the other: the step is the fill of all and the steady state of the slowest.
struct Pipeline {
    Counts layers, each, saved, rank;  // of a row: how many, what one takes and saves, where it lies
    std::int64_t ranks = 1, microbatches = 1;

    Came of(const Counts& chosen) const {
        std::vector<std::int64_t> load(static_cast<std::size_t>(ranks), 0);
        for (std::size_t r = 0; r < layers.size(); ++r)
            load[static_cast<std::size_t>(rank[r])] += layers[r] * each[r] - chosen[r] * saved[r];
        const std::int64_t sum = std::accumulate(load.begin(), load.end(), std::int64_t{0});
        const std::int64_t most = *std::max_element(load.begin(), load.end());
        double eighth = 0;
        for (const std::int64_t one : load) eighth += std::pow(static_cast<double>(one), 8);
        return {Duration{sum + (microbatches - 1) * most}, eighth};
    }

    Counts greedy(Duration most, std::int64_t at_once = 1) const {
        return fewest_layers(layers, most, at_once, [&](const std::vector<Counts>& choices) {
            std::vector<Came> came;
            for (const Counts& chosen : choices) came.push_back(of(chosen));
            return came;
        });
    }

    // Of every choice, the fewest layers that are enough; -1: none are.
    std::int64_t fewest(Duration most) const {
        std::int64_t best = -1;
        Counts chosen(layers.size(), 0);
        for (bool more = true; more;) {
            const std::int64_t count = std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0});
            if (of(chosen).step <= most && (best < 0 || count < best)) best = count;
            std::size_t r = 0;
            while (r < chosen.size() && chosen[r] == layers[r]) chosen[r++] = 0;
            more = r < chosen.size();
            if (more) ++chosen[r];
        }
        return best;
    }
};

std::int64_t sum_of(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

EmulateOptions small_step() {
    EmulateOptions options;
    options.workload.model = "dip-vlm-s";
    options.workload.cluster = "h100-sxm:2";
    options.workload.dataset = "vlm-mix";
    options.workload.microbatches = 2;
    options.workload.tp.number = 1;
    options.workload.pp.number = 2;
    options.workload.dp.number = 1;
    options.job.partition = "megatron";
    options.recompute = step_recompute_named("none");
    options.any_memory = true;
    return options;
}

Emulation emulated(const EmulateOptions& options) { return emulate(options.request(1, in_order), in_order); }

}  // namespace

TEST_CASE("on one rank the greedy choice is of the fewest layers, whatever rows save") {
    Random random(69, 1);
    for (int round = 0; round < 40; ++round) {
        Pipeline one;
        for (int r = 0; r < 3; ++r) {
            one.layers.push_back(1 + static_cast<std::int64_t>(4 * random.uniform()));
            one.each.push_back(100 + static_cast<std::int64_t>(100 * random.uniform()));
            one.saved.push_back(static_cast<std::int64_t>(60 * random.uniform()));
            one.rank.push_back(0);
        }
        const auto whole = static_cast<double>(one.of({0, 0, 0}).step.count());
        const Duration most{static_cast<std::int64_t>(whole * (0.8 + 0.2 * random.uniform()))};
        const std::int64_t fewest = one.fewest(most);
        const Counts chosen = one.greedy(most);
        CAPTURE(round);
        if (fewest >= 0)
            CHECK(sum_of(chosen) == fewest);
        else
            CHECK(one.of(chosen).step > most);
    }
}

TEST_CASE("on ranks that are equally slow the greedy choice takes from all of them, as the best does") {
    const Pipeline even{{4, 4, 4}, {100, 100, 100}, {30, 30, 30}, {0, 1, 2}, 3, 8};
    for (const std::int64_t percent : {5, 10, 15, 20}) {
        CAPTURE(percent);
        const Duration most{even.of({0, 0, 0}).step.count() * (100 - percent) / 100};
        const Counts chosen = even.greedy(most);
        CHECK(even.of(chosen).step <= most);
        CHECK(sum_of(chosen) == even.fewest(most));
    }
}

TEST_CASE("layers that are chosen several at once end with as many as are needed") {
    const Pipeline one{{12}, {100}, {10}, {0}, 1, 1};
    CHECK(one.greedy(Duration{1200 - 55}, 4) == Counts{6});
    CHECK(one.greedy(Duration{1200 - 40}, 4) == Counts{4});
    CHECK(one.greedy(Duration{1200}, 4) == Counts{0});
    CHECK(one.greedy(Duration{1}, 5) == Counts{12});  // not reached
    CHECK(Pipeline{{3}, {100}, {-5}, {0}, 1, 1}.greedy(Duration{1}) == Counts{0});
}

TEST_CASE("a step in the formats that it is in is the same step, and a what-if of formats is that of the option") {
    const Emulation usual = emulated(small_step());
    EmulateOptions same = small_step();
    same.workload.overrides.precision = "vit=bf16,llm=bf16,llm:0-3=bf16";
    CHECK(emulated(same).replicas == usual.replicas);

    EmulateOptions asked = small_step(), option = small_step();
    asked.what_if = "precision=llm=fp8";
    option.workload.overrides.precision = "llm=fp8";
    const auto request = asked.request(1, in_order);
    REQUIRE(request.as_it_is);
    CHECK(request.job.setup->what_if.precision == "llm=fp8");
    CHECK(emulate(request, in_order).step == emulated(option).step);
    CHECK(emulated(option).step < usual.step);
}

TEST_CASE("the layers that are named make the step as much shorter as was asked") {
    EmulateOptions asked = small_step();
    asked.what_if = "precision=fp8:0.5%";
    const auto request = asked.request(1, in_order);
    const Emulation usual = emulate(request, in_order);
    const auto answer = precision_answer(request, usual, in_order);
    REQUIRE(answer);
    REQUIRE(answer->layers);
    CHECK(answer->layers->reached);
    CHECK(answer->layers->count >= 1);
    CHECK(static_cast<double>(answer->layers->step.count()) <= 0.995 * static_cast<double>(usual.step.count()));

    EmulateOptions option = small_step();
    for (const auto& one : answer->layers->layers)
        option.workload.overrides.precision +=
            (option.workload.overrides.precision.empty() ? "" : ",") + one.name() + "=fp8";
    CHECK(emulated(option).step == answer->layers->step);
    CHECK(answer->layers->precision == option.workload.overrides.precision);
}

TEST_CASE("what was said of other modules is said again with the layers") {
    EmulateOptions asked = small_step();
    asked.workload.overrides.precision = "vit=fp8";
    asked.what_if = "precision=fp8:0.5%";
    const auto request = asked.request(1, in_order);
    const auto answer = precision_answer(request, emulate(request, in_order), in_order);
    REQUIRE(answer);
    REQUIRE(answer->layers);
    CHECK(answer->layers->precision.starts_with("vit=fp8,llm:"));
}

TEST_CASE("what is asked of formats is read, or told with what may be asked") {
    CHECK(!precision_asked("precision").products);
    CHECK(precision_asked("precision=nvfp4:12.5%").share == 0.125);
    for (const char* bad : {"precision=fp8", "precision=fp8:5", "precision=fp8:0%", "precision=fp8:100%",
                            "precision=fp32:5%", "precision=:5%", "precision="}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(static_cast<void>(precision_asked(bad)), Error);
    }
    EmulateOptions options = small_step();
    options.workload.cluster = "a100-sxm:2";
    options.what_if = "precision=fp8:5%";
    CHECK_THROWS_AS(static_cast<void>(options.request(1, in_order)), Error);
}

TEST_CASE("a step in other formats is as much shorter as torchtitan published it to be") {
    // pytorch/torchtitan components/quantization/nvfp4.md @b5bcd76c, Llama 3.1 8B on four GPUs: 2.9899 s in bf16,
    // 2.3336 in MXFP8, 2.1816 in nvfp4 with 5 of 32 layers in bf16 (the last, as is taken here).
    const auto step = [](const std::string& formats) {
        EmulateOptions options;
        options.workload.model = "llama3-8b";
        options.workload.cluster = "gb200-nvl72:4";
        options.workload.dataset = "constant-2048";
        options.workload.microbatches = 1;
        options.workload.microbatch_tokens = 65536;
        options.workload.recipe = "torch-fsdp2";
        options.workload.overrides.precision = formats;
        options.workload.tp.number = options.workload.pp.number = 1;
        options.workload.dp.number = 4;
        options.job.partition = "uniform";
        options.recompute = step_recompute_named("none");
        options.any_memory = true;
        return static_cast<double>(emulated(options).step.count());
    };
    const double bf16 = step("bf16");
    // By a share of the ratio itself: without scale() it would be of the ratio and 1.
    CHECK(step("fp8") / bf16 == doctest::Approx(2.3336 / 2.9899).epsilon(0.08).scale(0));
    CHECK(step("llm=nvfp4,llm:27-31=bf16") / bf16 == doctest::Approx(2.1816 / 2.9899).epsilon(0.08).scale(0));
}
