// A step with its loader.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

using namespace std::chrono_literals;

Emulation fed(const std::string& loader, const std::string& layout = R"("tp":1,"pp":2,"dp":2)") {
    EmulateOptions all;
    OptionTable table;
    all.add_to(table);
    const JsonDocument document(
        "asked", fmt::format(R"({{"model":"llama3-8b","cluster":"h100-sxm:4",{},"dataset":"constant-1024",)"
                             R"("microbatches":4,"any-memory":true}})",
                             layout));
    table.configure(document.root());
    all.loader = loader;
    return emulate(all.request(1, in_order), in_order);
}

// A token takes so many nanoseconds to decode.
std::string decoding(std::int64_t token_ns, const std::string& queue) {
    return fmt::format(R"({{"format":"pipeweaver-loader/1",{},"stages":[{{"name":"decode","on":"core","token_ns":{}}},)"
                       R"({{"name":"copy","on":"copy","pack_ns":1000}}]}})",
                       queue, token_ns);
}

}  // namespace

TEST_CASE("a loader that keeps up costs nothing, and one that does not costs what it lacks") {
    const Emulation alone = fed(decoding(1, R"("workers":2)"));
    REQUIRE(alone.input);
    CHECK(alone.input->step == alone.step);
    CHECK(alone.input->waits == 0ns);
    CHECK(!alone.input->decides);
    CHECK(alone.input->first > alone.step);
    // Microbatches of 8 x 1024 tokens: a replica's four take 4 x 8192 x 1 ms on one worker, which is far longer than
    // the step, and the copies are hidden behind it.
    const Emulation slow = fed(decoding(1'000'000, R"("workers":1)"));
    const Duration load = 4 * 8192 * 1ms;
    REQUIRE(slow.step < load / 2);
    REQUIRE(slow.input);
    CHECK(slow.input->step == load);
    CHECK(slow.input->waits == load - slow.step);
    REQUIRE(slow.input->decides);
    CHECK(slow.input->stages[*slow.input->decides].name == "decode");
    CHECK(slow.input->stages[*slow.input->decides].work == load);
    CHECK(slow.input->stages[*slow.input->decides].step_without == slow.step);
    REQUIRE(slow.input->enough);
    CHECK(slow.input->enough->workers == (load + slow.step - 1ns) / slow.step);
}

TEST_CASE("without workers a step takes what it loads, too, and cores are what workers share") {
    const Duration pack = 8192 * 1us + 1us;
    const Emulation none = fed(decoding(1'000, R"("workers":0)"));
    CHECK(none.input->step == none.step + 4 * pack);
    const Emulation shared = fed(decoding(1'000'000, R"("workers":4,"cores":2)"));
    CHECK(shared.input->step == 4 * 8192 * 1ms / 2);
}

TEST_CASE("a step is emulated as without a loader") {
    const Emulation with = fed("nfs"), slow = fed(decoding(100'000, R"("workers":1)"));
    CHECK(with.step == slow.step);
    CHECK(with.mfu == slow.mfu);
}

TEST_CASE("few shapes are padded to, and cost what they pad") {
    const auto shaped = [](std::optional<std::int64_t> shapes) {
        EmulateOptions all;
        OptionTable table;
        all.add_to(table);
        const JsonDocument document("asked", R"({"model":"dip-vlm-s","cluster":"h100-sxm:16","tp":4,"pp":2,"dp":2,)"
                                             R"("dataset":"vlm-mix","microbatches":6,"any-memory":true})");
        table.configure(document.root());
        all.shapes = shapes;
        return emulate(all.request(1, in_order), in_order);
    };
    const Emulation own = shaped(std::nullopt), many = shaped(100), few = shaped(2);
    CHECK(!own.shapes);
    REQUIRE(many.shapes);
    CHECK(many.shapes->before > 2);
    CHECK(many.shapes->after == many.shapes->before);
    REQUIRE(few.shapes);
    CHECK(few.shapes->after == 2);
    CHECK(few.shapes->positions > few.shapes->positions_before);
    CHECK(few.step > own.step);
    CHECK(few.tokens == own.tokens);
}
