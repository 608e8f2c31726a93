// Whether a step's host would be waited for.
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

struct HostCase {
    Emulation emulation;
    std::optional<HostBound> bound;
};

HostCase host_case(int tp, const std::string& recipe, const std::string& cluster = "h100-sxm:8",
                   const std::string& launched = {}) {
    EmulateOptions all;
    OptionTable table;
    all.add_to(table);
    const JsonDocument document(
        "asked",
        fmt::format(R"({{"model":"llama3-8b","cluster":"{}","tp":{},"pp":1,"dataset":"constant-1024",)"
                    R"("microbatches":4,"recipe":"{}"{},"any-memory":true}})",
                    cluster, tp, recipe, launched.empty() ? "" : fmt::format(R"(,"launched":"{}")", launched)));
    table.configure(document.root());
    const auto request = all.request(1, in_order);
    HostCase made{emulate(request, in_order), {}};
    made.bound = host_bound(request, made.emulation, in_order);
    return made;
}

}  // namespace

TEST_CASE("short passes wait for a host that launches kernel by kernel, and the step says how long it then takes") {
    const auto short_passes = host_case(8, "megatron-core");
    REQUIRE(short_passes.bound);
    const HostBound& bound = *short_passes.bound;
    CHECK(bound.as == "megatron-core-plain");
    CHECK(bound.layer == std::chrono::microseconds(1880));
    CHECK(bound.expert_layer == Duration{});  // it has no experts
    // 32 layers, four microbatches, forward and 1.3 times as long backward: no step is shorter than its host.
    CHECK(bound.step > std::chrono::microseconds(1880) * 32 * 4 * 23 / 10);
    CHECK(bound.step > short_passes.emulation.step * 11 / 10);
    REQUIRE(bound.waits.size() == 1);
    CHECK(bound.waits[bound.rank()] > Duration{});
    CHECK(bound.waits[bound.rank()] < bound.step);
    CHECK(bound.far == emulator::find_recipe("megatron-core-plain").far);
    CHECK(bound.far > 1);
    CHECK(static_cast<double>(bound.most().count()) ==
          doctest::Approx(bound.far * static_cast<double>(bound.step.count())));
    CHECK(!host_case(2, "megatron-core").bound);
}

TEST_CASE("a range is told where the host adds a twentieth at least, and the ends are a tenth apart") {
    emulator::Setup waiting;
    waiting.recipe.eager = "megatron-core-plain";
    const auto told = [&](double far, int near, int eager) {
        waiting.recipe.far = far;
        return host_bound_of(waiting, std::chrono::milliseconds(near), std::chrono::milliseconds(eager));
    };
    CHECK(!told(1.41, 100, 104));
    REQUIRE(told(1.41, 100, 106));
    CHECK(told(1.41, 100, 106)->most() == std::chrono::microseconds(149'460));
    // Where nobody knows how far such runs are off, the far end is the emulated one.
    CHECK(!told(1, 100, 106));
    REQUIRE(told(1, 100, 112));
    CHECK(told(1, 100, 112)->most() == std::chrono::milliseconds(112));
}

TEST_CASE("at the far end replicas have the samples that they have at the near one") {
    const auto request_of = [](const std::string& more) {
        EmulateOptions all;
        OptionTable table;
        all.add_to(table);
        const JsonDocument document(
            "asked",
            R"({"model":"qwen2.5-vl-7b","cluster":"h100-sxm:16","tp":4,"pp":1,"dataset":"vlm-mix","microbatches":4,)"
            R"("encoders":"megatron-bridge","equal-microbatches":true,"packing":"ffd","recompute":"none")" +
                more + "}");
        table.configure(document.root());
        return all.request(1, in_order);
    };
    const auto request = request_of("");
    const Emulation near = emulate(request, in_order);
    const auto bound = host_bound(request, near, in_order);
    auto eager = request_of(R"(,"launched":"eager")");
    REQUIRE(bound);
    CHECK(emulate(eager, in_order).step < bound->step);  // shared out anew, by what passes take with their host
    eager.batch.shares = near.assigned;
    CHECK(emulate(eager, in_order).step == bound->step);
}

TEST_CASE("a launch that is said has one end: that of graphs the near one, that of eager the far one") {
    const auto open = host_case(8, "megatron-core");
    const auto graphs = host_case(8, "megatron-core", "h100-sxm:8", "graphs");
    const auto eager = host_case(8, "megatron-core", "h100-sxm:8", "eager");
    REQUIRE(open.bound);
    CHECK(!graphs.bound);
    CHECK(!eager.bound);
    CHECK(graphs.emulation.step == open.emulation.step);
    CHECK(eager.emulation.step == open.bound->step);
    // What knows its host is launched so already; in graphs it does not wait.
    const auto plain = host_case(8, "megatron-core-plain");
    CHECK(host_case(8, "megatron-core-plain", "h100-sxm:8", "eager").emulation.step == plain.emulation.step);
    CHECK(host_case(8, "megatron-core-plain", "h100-sxm:8", "graphs").emulation.step < plain.emulation.step);
}

TEST_CASE("a recipe of one's own has the range of what it extends") {
    const std::string own = R"({\"format\":\"pipeweaver-recipe/1\",\"name\":\"own\",\"extends\":\"megatron-core\"})";
    const auto mine = host_case(8, own), theirs = host_case(8, "megatron-core");
    REQUIRE(mine.bound);
    REQUIRE(theirs.bound);
    CHECK(mine.bound->as == "megatron-core-plain");
    CHECK(mine.bound->step == theirs.bound->step);
}

TEST_CASE("nothing is said where the recipe knows its host, and on a CPU") {
    CHECK(!host_case(8, "megatron-core-plain").bound);
    CHECK(!host_case(8, "megatron-core", "cpu:8").bound);
}
