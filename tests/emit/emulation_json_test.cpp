#include "pipeweaver/emit/emulation_files.hpp"
#include "tests/support/small_emulation.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace pipeweaver;
using testing::SmallEmulation;

namespace {

std::int64_t sum_of_parts(const nlohmann::ordered_json& rank) {
    std::int64_t sum = rank["compute_ns"].get<std::int64_t>();
    for (const auto& stream : rank["exposed_ns"]) sum += stream.get<std::int64_t>();
    for (const char* name : {"bubble_ns", "gradients_ns", "optimizer_ns"}) sum += rank[name].get<std::int64_t>();
    return sum;
}

std::int64_t sum_of_memory(const nlohmann::ordered_json& memory) {
    std::int64_t sum = 0;
    for (const char* name : {"weights_bytes", "gradients_bytes", "optimizer_bytes", "workspace_bytes",
                             "receive_buffers_bytes", "activations_bytes", "transient_bytes"})
        sum += memory[name].get<std::int64_t>();
    return sum;
}

}  // namespace

TEST_CASE("emulation.json has every rank's time and memory, and both add up") {
    const SmallEmulation small(2);
    const auto json = emit::emulation_json(small.request, small.emulation, nullptr);

    CHECK(json["format"] == "pipeweaver-emulation/1");
    CHECK(json["step_ns"] == 1'000'000);
    CHECK(json["makespan_ns"] == 960'000);
    CHECK(json["after_all_ranks_ns"] == 40'000);
    CHECK(json["tokens"] == 9984);
    CHECK(json["base"].is_null());
    REQUIRE(json["replicas"].size() == 2);
    for (const auto& replica : json["replicas"]) {
        REQUIRE(replica["ranks"].size() == 4);
        for (const auto& rank : replica["ranks"]) {
            CHECK(sum_of_parts(rank) == replica["step_ns"]);
            CHECK(rank["busy_ns"] == 800'000);
            CHECK(sum_of_memory(rank["memory"]) == rank["memory"]["peak_bytes"]);
        }
        CHECK(replica["critical_path"][0].dump() == R"({"what":"gemm","module":"llm","time_ns":700000})");
        CHECK(replica["critical_path"][1]["module"].is_null());
    }
    CHECK(json["partition"]["chains"][0]["stages"][1].dump() ==
          R"({"stage":1,"rank":1,"parts":[{"module":"llm","first_layer":2,"layers":6}]})");
}

TEST_CASE("emulation.json has the memory over time of the slowest replica alone") {
    SmallEmulation small(2);
    small.emulation.slowest = 1;
    const auto json = emit::emulation_json(small.request, small.emulation, nullptr);

    CHECK(json["slowest_replica"] == 1);
    CHECK(!json["replicas"][0]["ranks"][0]["memory"].contains("timeline"));
    CHECK(json["replicas"][1]["ranks"][0]["memory"]["timeline"].dump() ==
          "[[0,40802189312],[1000,53687091200],[900000,40802189312]]");
}

TEST_CASE("emulation.json says what was asked, and what the step is without the what-if") {
    SmallEmulation small;
    const auto base = small.emulation;
    small.change_setup([](emulator::Setup& setup) {
        setup.what_if.modules = {{"vit", 0.5}};
        setup.what_if.devices = {{1, {}, 2}};
        setup.recipe.zero = 3;
    });
    small.request.recompute = {.everywhere = emulator::Recompute::full};
    small.emulation.step -= Duration{1000};
    const auto json = emit::emulation_json(small.request, small.emulation, &base);

    CHECK(json["asked"]["recompute"] == "full");
    CHECK(json["recompute"] == "none");
    CHECK(json["asked"]["schedule"].is_null());
    CHECK(json["asked"]["recipe"]["zero"] == 3);
    CHECK(json["asked"]["what_if"].dump() ==
          R"({"devices":[{"rank":1,"replica":null,"factor":2.0}],"links":{},"operators":{},"modules":{"vit":0.5}})");
    CHECK(json["step_ns"] == 999'000);
    CHECK(json["base"]["step_ns"] == 1'000'000);
    CHECK(json["base"]["mfu"] == 0.5);
}

TEST_CASE("emulation.json says of each rank what it recomputes, where each has its own") {
    SmallEmulation small(2);
    const auto uniform = emit::emulation_json(small.request, small.emulation, nullptr);
    CHECK(!uniform["replicas"][0]["ranks"][0].contains("recompute"));

    small.request.recompute = planner::recompute_by_rank;
    small.emulation.recompute = planner::recompute_by_rank;
    using emulator::Recompute;
    small.emulation.by_rank = {{Recompute::full, Recompute::blocks(3), Recompute::selective, Recompute::none},
                               {Recompute::none, Recompute::none, Recompute::none, Recompute::blocks(1)}};
    const auto json = emit::emulation_json(small.request, small.emulation, nullptr);
    CHECK(json["asked"]["recompute"] == "by-rank");
    CHECK(json["recompute"] == "by-rank");
    CHECK(json["replicas"][0]["ranks"][1]["recompute"] == "blocks:3");
    CHECK(json["replicas"][1]["ranks"][0]["recompute"] == "none");
    CHECK(json["replicas"][1]["ranks"][3]["recompute"] == "blocks:1");
}

TEST_CASE("equal emulations are equal JSON, however they were computed") {
    SmallEmulation once, again;
    again.change_setup([](emulator::Setup& setup) { setup.store.reset(); });
    again.emulation.reuse.hits = 1000;
    CHECK(emit::emulation_json(once.request, once.emulation, nullptr).dump() ==
          emit::emulation_json(again.request, again.emulation, nullptr).dump());
}
