// What passes of a plan choose from: --recompute, and what a target carries.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "planner/way/settings.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using emulator::Recompute;

namespace {

const std::vector<Recompute> with_selective{Recompute::none, Recompute::selective, Recompute::half, Recompute::full};

// A part of the memory that a plan takes which has as much as it likes.
Request with_memory(Request request, double part) {
    const auto plan = testing::planned(request);
    const auto& peaks = plan.replicas.front().found.replay.peak;
    const auto usable = static_cast<double>(emulator::usable_bytes(request.job.setup->cluster).count);
    const auto peak = static_cast<double>(std::max_element(peaks.begin(), peaks.end())->count);
    testing::change_setup(request, [&](emulator::Setup& setup) {
        setup.headroom.parts_per_million = static_cast<std::int64_t>(1e6 * (1 - part * peak / usable));
    });
    return request;
}

}  // namespace

TEST_CASE("a menu is what is said, in its order, and otherwise what the target's passes carry") {
    CHECK(recompute_menu("", target("free")).empty());
    CHECK(recompute_menu("auto", target("free")).empty());
    CHECK(recompute_menu("none,blocks:2,full", target("free")) ==
          std::vector{Recompute::none, Recompute::blocks(2), Recompute::full});
    CHECK(recompute_menu("none,offload", target("free")) == std::vector{Recompute::none, Recompute::offload});
    Job job;
    CHECK(menu_of(job) == with_selective);
    job.target = "torch-csv";
    CHECK(menu_of(job) == emulator::usual_modes());
    job.recompute = {Recompute::full};
    CHECK(menu_of(job) == job.recompute);
}

TEST_CASE("a menu that cannot be is an error that says what is allowed") {
    for (const char* wrong : {"most", "none,", "core-attention", "blocks:0", "encoders"})
        CHECK_THROWS_WITH_AS(static_cast<void>(recompute_menu(wrong, target("any"))),
                             doctest::Contains("must be auto, or some of none, selective"), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(recompute_menu("full,full", target("any"))),
                         "--recompute: 'full' is there twice", Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(recompute_menu("none,selective", target("torch-csv"))),
                         doctest::Contains("torch-csv carries no selective recomputation of single passes; allowed "
                                           "with --target torch-actions, any"),
                         Error);
}

TEST_CASE("a partition of what was launched is planned on with a menu that passes have") {
    CHECK_NOTHROW(require_for_passes({Recompute::none, Recompute::selective, Recompute::blocks(2)}));
    CHECK_THROWS_WITH_AS(require_for_passes({Recompute::second_products}),
                         doctest::Contains("--partition: its memory_modes have second-products, of whole steps alone"),
                         Error);
}

TEST_CASE("where memory is short a plan takes selective recomputation, and is shorter for it") {
    Request any = testing::small_request();
    any.job.partition = "balanced";
    any.job.target = "any";
    any = with_memory(any, 0.85);
    const auto plan = testing::planned(any);
    REQUIRE(plan.partition().modes == with_selective);
    const auto& modes = plan.replicas.front().found.schedule->mode;
    CHECK(std::count(modes.begin(), modes.end(), 1) > 0);
    any.job.recompute = emulator::usual_modes();
    const auto without = testing::planned(any);
    CHECK(without.partition().modes == emulator::usual_modes());
    CHECK(plan.step < without.step);
}
