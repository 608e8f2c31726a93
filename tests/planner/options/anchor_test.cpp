// A measured launch that corrects what others are predicted to take.
#include "pipeweaver/planner/anchor.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/emulate_options.hpp"
#include "pipeweaver/planner/job.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

const std::string on_8 =
    R"("model":"dip-vlm-s","cluster":"mi300x:8","tp":2,"pp":1,"dataset":"vlm-mix","microbatches":2,"recompute":"full")";

EmulationRequest anchored_request(const std::string& options) {
    EmulateOptions all;
    OptionTable table;
    all.add_to(table);
    const JsonDocument document("asked", "{" + options + R"(,"any-memory":true})");
    table.configure(document.root());
    all.workload.anchor_read = read_anchor(all.workload.anchor);
    return all.request(1, in_order);
}

Emulation emulated_of(const std::string& options) { return emulate(anchored_request(options), in_order); }

std::string anchor_file(const std::string& measured, const std::string& launch = on_8) {
    return testing::written("anchor.json",
                            R"({"format":"pipeweaver-anchor/1",)" + measured + R"("launch":{)" + launch + "}}")
        .string();
}

std::string with_anchor(const std::string& path) { return fmt::format(R"(,"anchor":"{}")", path); }

Bytes peak_held(const Emulation& emulation) {
    Bytes most{};
    for (const auto& replica : emulation.replicas)
        for (const auto& rank : replica.memory) most = std::max(most, rank.peak);
    return most;
}

std::string step_said(Duration step) {
    return fmt::format(R"("step_time_s":{:.9f},)", 1e-9 * static_cast<double>(step.count()));
}

}  // namespace

TEST_CASE("the anchored launch takes what was measured, and a larger one takes longer by as much") {
    const auto plain = emulated_of(on_8);
    const Duration measured = plain.step * 13 / 10;
    const auto path = anchor_file(step_said(measured));
    const auto anchor = read_anchor(path);

    CHECK(anchor->device == "mi300x");
    CHECK(anchor->found.emulated == plain.step);
    CHECK(anchor->found.kernels > 1.3);  // traffic and optimizer take no longer
    CHECK(anchor->found.kernels < 1.6);
    const auto again = emulated_of(on_8 + with_anchor(path));
    CHECK(static_cast<double>(again.step.count()) ==
          doctest::Approx(static_cast<double>(measured.count())).epsilon(2e-4));

    std::string on_32 = on_8;
    on_32.replace(on_32.find("mi300x:8"), 8, "mi300x:32");
    const auto far = emulated_of(on_32), corrected = emulated_of(on_32 + with_anchor(path));
    const double longer = static_cast<double>(corrected.step.count()) / static_cast<double>(far.step.count());
    CHECK(longer > 1.15);
    CHECK(longer < 1.35);
    CHECK(peak_held(corrected) == peak_held(far));
}

TEST_CASE("what the fullest GPU took more is held on every GPU, and what it took less frees nothing") {
    const auto plain = emulated_of(on_8);
    const auto with = [&](Bytes measured, const char* kind) {
        return anchor_file(fmt::format(R"("memory_gib":{},"memory_kind":"{}",)",
                                       static_cast<double>(measured.count) / (1 << 30), kind));
    };
    const auto more = with(peak_held(plain) + 3_GiB, "allocated");
    CHECK(read_anchor(more)->found.beside == 3_GiB);
    CHECK(read_anchor(more)->found.kernels == 1);
    const auto corrected = emulated_of(on_8 + with_anchor(more));
    CHECK(peak_held(corrected) == peak_held(plain) + 3_GiB);
    CHECK(corrected.step == plain.step);

    const auto less = with(peak_held(plain) - 1_GiB, "allocated");
    CHECK(read_anchor(less)->found.beside == Bytes{});
    CHECK(peak_held(emulated_of(on_8 + with_anchor(less))) == peak_held(plain));
    // What the recipe holds beside the model it holds with an anchor, too.
    const std::string by_deepspeed = on_8.substr(0, on_8.find(R"("tp":2)")) +
                                     R"("tp":1,"pp":1,"dataset":"vlm-mix","microbatches":2,"recompute":"full",)"
                                     R"("recipe":"deepspeed-zero")";
    const auto own = emulated_of(by_deepspeed);
    const auto timed = anchor_file(step_said(own.step), by_deepspeed);
    CHECK(peak_held(emulated_of(by_deepspeed + with_anchor(timed))) == peak_held(own));
    // What the allocator and CUDA take is no tensor's.
    CHECK(read_anchor(with(peak_held(plain) + 3_GiB, "on-device"))->found.beside < 3_GiB);
}

TEST_CASE("an anchor is read strictly, with file and key") {
    const auto refused = [](const std::string& path, const std::string& why) {
        CAPTURE(why);
        CHECK_THROWS_WITH_AS(static_cast<void>(read_anchor(path)), doctest::Contains(why.c_str()), Error);
        CHECK_THROWS_WITH_AS(static_cast<void>(read_anchor(path)), doctest::Contains("anchor.json: "), Error);
    };
    const auto without = [](std::string_view part) {
        std::string launch = on_8;
        launch.erase(launch.find(part), part.size());
        return launch;
    };
    const std::string step = R"("step_time_s":4,)";
    refused(anchor_file(""), "the key 'step_time_s' is missing");
    refused(anchor_file(R"("step_times":4,)"), "unknown key 'step_times'; did you mean 'step_time_s'?");
    refused(anchor_file(R"("step_time_s":"4s",)"), "step_time_s: ");
    refused(anchor_file(R"("step_time_s":0.000001,)"), "do not explain it; another launch was measured");
    refused(anchor_file(R"("memory_gib":500,)"), "memory_gib: is 500, must be a number from 0.001 to 192");
    refused(anchor_file(R"("memory_gib":50,"memory_kind":"virtual",)"), "memory_kind: is 'virtual'");
    refused(anchor_file(step, without(R"("tp":2,)")), "launch: the key 'tp' is missing");
    refused(anchor_file(step, without(R"(,"recompute":"full")")), "launch: the key 'recompute' is missing");
    refused(anchor_file(step, on_8 + R"(,"tpp":2)"), "unknown key 'tpp'");
    refused(anchor_file(step, on_8 + R"(,"dp":"auto")"), "launch.dp: is 'auto', must be the number that was run");
    refused(anchor_file(step, on_8 + R"(,"zero":"auto")"), "launch.zero: is 'auto', must be the stage that was run");
    refused(anchor_file(step, on_8 + R"(,"anchor":"x.json")"), "launch.anchor: an anchor's launch has no anchor");
}

TEST_CASE("an anchor corrects the device and recipe that it was measured on alone") {
    const auto path = anchor_file(step_said(emulated_of(on_8).step));
    std::string other = on_8;
    other.replace(other.find("mi300x:8"), 8, "h200-sxm:8");
    CHECK_THROWS_WITH_AS(static_cast<void>(emulated_of(other + with_anchor(path))),
                         doctest::Contains("is of device mi300x, and h200_sxm is asked for"), Error);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(emulated_of(on_8 + R"(,"recipe":"megatron-core-plain")" + with_anchor(path))),
        doctest::Contains("is of recipe megatron-core, and megatron-core-plain is asked for"), Error);
}

TEST_CASE("a measured layer corrects kernels, and says that no runs were held to it") {
    const auto first_layer = [](const std::string& options) {
        const auto request = anchored_request(options);
        return layers_of(*request.job.setup, request.batch).front();
    };
    const auto plain = first_layer(on_8);
    const auto seconds = [](Duration time) { return 1e-9 * 1.25 * static_cast<double>(time.count()); };
    const auto layer_of = [&](const std::string& module) {
        return anchor_file(fmt::format(R"("layer":{{"module":"{}","forward_s":{:.9f},"backward_s":{:.9f}}},)", module,
                                       seconds(plain.forward), seconds(plain.backward)));
    };
    const auto path = layer_of(plain.module);
    const auto corrected = first_layer(on_8 + with_anchor(path));
    const auto both = [](const emulator::LayerTime& layer) {
        return static_cast<double>((layer.forward + layer.backward).count());
    };
    CHECK(both(corrected) == doctest::Approx(1.25 * both(plain)).epsilon(2e-4));
    const auto anchor = read_anchor(path);
    CHECK(anchor->found.kernels > 1.2);
    CHECK(!anchor->found.has_step());
    const auto said = emulator::anchored_text(*anchored_request(on_8 + with_anchor(path)).job.setup);
    CHECK(said.find("how far a step is off then was held to no runs") != std::string::npos);
    CHECK_THROWS_WITH_AS(static_cast<void>(read_anchor(layer_of("tail"))),
                         doctest::Contains("layer: the model has no layer 0 of a module 'tail'"), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(read_anchor(
                             anchor_file(R"("step_time_s":4,"layer":{"module":"llm","forward_s":1,"backward_s":2},)"))),
                         doctest::Contains("layer: goes without step_time_s"), Error);
}
