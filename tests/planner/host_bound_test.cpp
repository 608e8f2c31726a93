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

HostCase host_case(int tp, const std::string& recipe, const std::string& cluster = "h100-sxm:8") {
    EmulateOptions all;
    OptionTable table;
    all.add_to(table);
    const JsonDocument document(
        "asked", fmt::format(R"({{"model":"llama3-8b","cluster":"{}","tp":{},"pp":1,"dataset":"constant-1024",)"
                             R"("microbatches":4,"recipe":"{}","any-memory":true}})",
                             cluster, tp, recipe));
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
    // 32 layers, four microbatches, forward and 1.3 times as long backward: no step is shorter than its host.
    CHECK(bound.step > std::chrono::microseconds(1880) * 32 * 4 * 23 / 10);
    CHECK(bound.step > short_passes.emulation.step * 11 / 10);
    CHECK(bound.waits > Duration{});
    CHECK(bound.waits < bound.step);
    CHECK(!host_case(2, "megatron-core").bound);
}

TEST_CASE("nothing is said where the recipe knows its host, and on a CPU") {
    CHECK(!host_case(8, "megatron-core-plain").bound);
    CHECK(!host_case(8, "megatron-core", "cpu:8").bound);
}
