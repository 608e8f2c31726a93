// An emulated step whose times vary, and whose gradients travel in fewer bytes.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using emulator::GradientFormat;

namespace {

// Two replicas; gradients in buckets of so many bytes, 0: after the last backward.
EmulationRequest two_replicas(std::int64_t bucket, int zero = 1) {
    const Request small = testing::small_request(2, {5, 0, 2, 9, 1, 4, 0, 7, 3, 3, 8, 0, 1, 6, 2, 5});
    EmulationRequest request;
    request.job = small.job;
    request.batch = small.batch;
    request.job.partition = "balanced";
    testing::change_setup(request, [&](emulator::Setup& setup) {
        setup.recipe.bucket = Bytes{bucket};
        setup.recipe.zero = zero;
    });
    return request;
}

}  // namespace

TEST_CASE("steps vary around the emulated one") {
    for (const std::int64_t bucket : {0, 8'000'000}) {
        CAPTURE(bucket);
        EmulationRequest request = two_replicas(bucket);
        const Emulation emulation = emulate(request, in_order);
        CHECK_FALSE(jitter_of(request, emulation, in_order));
        request.jitter.emplace();
        request.jitter->steps = 50;
        const auto report = jitter_of(request, emulation, in_order);
        REQUIRE(report);
        CHECK(report->lists.steady == emulation.makespan);
        CHECK(report->replicas == 2);
        CHECK(report->slowed.size() == 4);
        CHECK(report->lists.p50 > emulation.makespan * 95 / 100);
        CHECK(report->lists.p99 < emulation.makespan * 110 / 100);
    }
}

TEST_CASE("gradients as they are end when the emulated step does, and never later in fewer bytes") {
    for (const std::int64_t bucket : {0, 8'000'000}) {
        CAPTURE(bucket);
        EmulationRequest request = two_replicas(bucket);
        const Emulation emulation = emulate(request, in_order);
        CHECK_FALSE(gradients_of(request, emulation, in_order));
        request.gradients = true;
        const auto report = gradients_of(request, emulation, in_order);
        REQUIRE(report);
        CHECK(report->chosen.makespan_before() == emulation.makespan);
        CHECK(report->chosen.makespan_after() <= emulation.makespan);
        for (const GradientChoice& one : report->alone) {
            CHECK(one.makespan_after() <= emulation.makespan);
            CHECK(report->chosen.makespan_after() <= one.makespan_after());
        }
        std::size_t most = 0;
        for (const auto& rank : report->ranks) {
            most = std::max(most, rank.buckets.size());
            for (const auto& one : rank.buckets) {
                const auto sent = [&](GradientFormat format) {
                    const auto at = std::find(report->formats.begin(), report->formats.end(), format);
                    return one.ways[static_cast<std::size_t>(at - report->formats.begin())].sent.count;
                };
                CHECK(sent(GradientFormat::as_is) == 4 * one.parameters);
                CHECK(sent(GradientFormat::bf16) == 2 * one.parameters);
                CHECK(sent(GradientFormat::fp8) == one.parameters + 4 * ((one.parameters + 127) / 128));
                CHECK(sent(GradientFormat::top_k) == 8 * ((one.parameters + 99) / 100));  // to who has the share
            }
        }
        CHECK((most > 1) == (bucket > 0));
    }
}

TEST_CASE("without ZeRO each of two copies gets all that both keep") {
    EmulationRequest request = two_replicas(0, 0);
    request.gradients = true;
    const auto report = gradients_of(request, emulate(request, in_order), in_order);
    REQUIRE(report);
    REQUIRE(report->formats.back() == GradientFormat::top_k);
    for (const auto& rank : report->ranks)
        for (const auto& one : rank.buckets) CHECK(one.ways.back().sent.count == 2 * 8 * ((one.parameters + 99) / 100));
    REQUIRE_FALSE(report->ranks.front().buckets.empty());
}

TEST_CASE("formats that a device or its gradients lack are not among them, nor gradients that passes reduce") {
    using Formats = std::vector<GradientFormat>;
    emulator::Setup setup = testing::small_setup({.tp = 2, .pp = 4, .dp = 1});
    CHECK(emulator::formats_for(setup) ==
          Formats{GradientFormat::as_is, GradientFormat::bf16, GradientFormat::fp8, GradientFormat::top_k});
    setup.recipe.state.gradient = 2;
    setup.cluster.device = "a100_sxm";
    CHECK(emulator::formats_for(setup) == Formats{GradientFormat::as_is, GradientFormat::top_k});

    EmulationRequest request = two_replicas(0, 2);
    request.gradients = true;
    const Emulation emulation = emulate(request, in_order);
    CHECK_THROWS_WITH_AS(static_cast<void>(gradients_of(request, emulation, in_order)),
                         doctest::Contains("--what-if gradients: goes with ZeRO 0 and 1"), Error);
}
