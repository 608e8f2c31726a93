// A step with its loader.
#include "pipeweaver/planner/input.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

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
    all.batch.loader = loader;
    return emulate(all.request(1, in_order), in_order);
}

// A token takes so many nanoseconds to decode.
std::string decoding(std::int64_t token_ns, const std::string& queue) {
    return fmt::format(R"({{"format":"pipeweaver-loader/1",{},"stages":[{{"name":"decode","on":"core","token_ns":{}}},)"
                       R"({{"name":"copy","on":"copy","pack_ns":1000}}]}})",
                       queue, token_ns);
}

// Replicas whose steps take 100 ns for each of their packs, of so many samples without anything in them.
class Steps {
public:
    Steps& add(std::size_t packs, std::size_t samples_each) {
        auto& mine = microbatches_.emplace_back();
        for (std::size_t m = 0; m < packs; ++m) {
            auto& one = mine.emplace_back();
            for (std::size_t s = 0; s < samples_each; ++s) one.samples.push_back(s);
        }
        samples_.resize(std::max(samples_.size(), samples_each));
        return *this;
    }

    Input fed_by(const loader::Loader& loader) const {
        check_input(loader, {}, samples_, microbatches_);
        std::vector<InputReplica> replicas;
        for (const auto& mine : microbatches_) {
            std::vector<Duration> begins;
            for (std::size_t m = 0; m < mine.size(); ++m) begins.push_back(static_cast<std::int64_t>(m) * 100ns);
            replicas.push_back({&mine, begins, static_cast<std::int64_t>(mine.size()) * 100ns});
        }
        return input_of(loader, {}, samples_, replicas);
    }

private:
    std::vector<workloads::Sample> samples_;
    std::vector<std::vector<workloads::Microbatch>> microbatches_;
};

// 30 ns a sample, on a core.
loader::Loader taking_30(const std::string& queue) {
    return loader::find_loader(R"({"format":"pipeweaver-loader/1",)" + queue +
                               R"(,"stages":[{"name":"decode","on":"core","sample_ns":30}]})");
}

EmulateOptions in_shapes(std::optional<std::int64_t> shapes) {
    EmulateOptions all;
    OptionTable table;
    all.add_to(table);
    const JsonDocument document("asked", R"({"model":"dip-vlm-s","cluster":"h100-sxm:16","tp":4,"pp":2,"dp":2,)"
                                         R"("dataset":"vlm-mix","microbatches":6,"any-memory":true})");
    table.configure(document.root());
    all.shapes = shapes;
    return all;
}

ShapesPrice priced(std::int64_t most, Duration each, std::int64_t steps) {
    EmulateOptions all = in_shapes(most);
    all.compile_time = each;
    all.compile_steps = steps;
    const EmulationRequest request = all.request(1, in_order);
    return price_of_shapes(request, emulate(request, in_order), in_order).value();
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
    CHECK(slow.input->longest >= slow.input->step);
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
    const Emulation with = fed("nfs"), slow = fed(decoding(100'000, R"("workers":1)")), none = fed("");
    CHECK(!none.input);
    CHECK(with.step == none.step);
    CHECK(slow.step == none.step);
    CHECK(slow.mfu == none.mfu);
}

TEST_CASE("windows are replayed until they come round, however large they are") {
    // Four workers gather 1,250 packs of 240 ns each, and begin when 8 packs are left: of the 300,000 ns the GPU waits
    // all but 800 in each 1,250 steps of 400.
    const Input four = Steps().add(4, 8).fed_by(taking_30(R"("workers":4,"window":10000)"));
    CHECK(four.step == 400ns + 299'200ns / 1'250);
    CHECK(four.waits == four.step - 400ns);
    CHECK(four.longest == 400ns + 299'200ns);
    // Each worker more makes them come round 1,250 steps later, and 16,384 are replayed.
    CHECK(!four.enough);
    CHECK(four.most_tried == 13);
    REQUIRE(four.left_out.size() == 1);
    CHECK(four.left_out[0].starts_with("with windows of 10000 samples 13 workers are tried at most"));
}

TEST_CASE("what is enough is tried on steps in which windows of all its workers come round") {
    // A worker gathers 125 packs in 30,000 ns: 300 packs have to be left when it begins. 18 workers with 16 packs ahead
    // have 288, 19 have 304, and with 15 ahead 285.
    const Input one = Steps().add(4, 8).fed_by(taking_30(R"("workers":1,"window":1000)"));
    REQUIRE(one.enough);
    CHECK(one.enough->workers == 19);
    CHECK(one.enough->prefetch == 16);
    CHECK(one.left_out.empty());
}

TEST_CASE("what cannot be replayed is refused before anything is") {
    const auto refuses = [](const Steps& steps, const std::string& queue, const char* words) {
        CHECK_THROWS_WITH_AS(static_cast<void>(steps.fed_by(taking_30(queue))), doctest::Contains(words), Error);
    };
    const std::string together = R"("workers":4,"together":"microbatch")";
    refuses(Steps().add(4, 8).add(5, 8), together, "and they have 4 and 5 microbatches");
    CHECK(Steps().add(4, 8).add(4, 2).fed_by(taking_30(together)).step == 400ns);
    refuses(Steps().add(4, 8), R"("workers":1024,"window":1000000)",
            "windows of 1000000 samples on 1024 workers come round in 32000000 steps");
    CHECK_THROWS_WITH_AS(static_cast<void>(fed(decoding(3'600'000'000'000, R"("workers":1)"))),
                         doctest::Contains("takes 100 hours or more for the samples that replica 0 has in a step"),
                         Error);
}

TEST_CASE("of many replicas those with the most to load are among the ones that are replayed") {
    Steps many;
    for (int r = 0; r < 69; ++r) many.add(4, 8);
    const Input input = many.add(4, 16).fed_by(taking_30(R"("workers":1)"));
    CHECK(input.step == 4 * 16 * 30ns);
    // 32 with the longest steps, and the last beside 31 of these with the most to load.
    CHECK(input.left_out ==
          std::vector<std::string>{"of 70 replicas the 33 with the longest steps and the most to load are replayed"});
}

TEST_CASE("the cores that are enough go to the stages that need one") {
    const auto loader = loader::find_loader(
        R"({"format":"pipeweaver-loader/1","workers":1,"stages":[{"name":"read","on":"storage","sample_ns":10},)"
        R"({"name":"decode","on":"core","sample_ns":60},{"name":"tokenize","on":"core","sample_ns":20}]})");
    const Input input = Steps().add(4, 8).fed_by(loader);
    // 8 samples of 90 ns each 100 ns, 80 of them on cores.
    REQUIRE(input.enough);
    CHECK(input.enough->workers == 8);
    CHECK(*input.enough->cores >= 7);
    CHECK(!input.stages[0].cores);
    REQUIRE((input.stages[1].cores && input.stages[2].cores));
    CHECK(*input.stages[1].cores + *input.stages[2].cores == *input.enough->cores);
    CHECK(*input.stages[1].cores > *input.stages[2].cores);
}

TEST_CASE("shapes are refused where modules would pad each other's items, and where the target pads") {
    const auto refuses = [](const char* asked, const char* words) {
        EmulateOptions all;
        OptionTable table;
        all.add_to(table);
        const JsonDocument document("asked", fmt::format(R"({{"cluster":"h100-sxm:4","tp":1,"pp":2,"dp":2,{},)"
                                                         R"("microbatches":4,"any-memory":true,"shapes":2}})",
                                                         asked));
        table.configure(document.root());
        CHECK_THROWS_WITH_AS(static_cast<void>(all.request(1, in_order)), doctest::Contains(words), Error);
    };
    refuses(R"("model":"qwen2.5-omni-7b","dataset":"constant-40+1x336px+12s-audio")",
            "pads all items alike, and those of this batch go to 2 encoders and generators of 'qwen2.5-omni-7b'");
    refuses(R"("model":"llama3-8b","dataset":"constant-1024","target":"torch-csv")",
            "--shapes: goes without --target torch-csv in a pipeline");
}

TEST_CASE("few shapes are padded to, and cost what they pad") {
    const auto shaped = [](std::optional<std::int64_t> shapes) {
        return emulate(in_shapes(shapes).request(1, in_order), in_order);
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

TEST_CASE("as many shapes are cheapest as their compiling is worth over the steps that follow") {
    const ShapesPrice dear = priced(3, 1'000s, 10);
    REQUIRE(dear.tried.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        const auto shapes = i < 3 ? std::optional(static_cast<std::int64_t>(i) + 1) : std::nullopt;
        const Emulation alone = emulate(in_shapes(shapes).request(1, in_order), in_order);
        CHECK(dear.tried[i].step == alone.step);
        CHECK(dear.tried[i].seconds == doctest::Approx(1'000.0 * static_cast<double>(dear.tried[i].shapes) +
                                                       10 * static_cast<double>(alone.step.count()) * 1e-9));
    }
    CHECK(dear.tried[0].shapes == 1);
    CHECK(dear.tried[3].shapes > 3);  // as microbatches are
    CHECK(dear.cheapest == 0);
    CHECK(priced(3, 1ns, 1'000'000).cheapest == 3);
    const EmulationRequest request = in_shapes(3).request(1, in_order);
    CHECK(!price_of_shapes(request, emulate(request, in_order), in_order));
    EmulateOptions half = in_shapes(3);
    half.compile_time = 1s;
    CHECK_THROWS_WITH_AS(static_cast<void>(half.request(1, in_order)),
                         "--compile-time: goes with --compile-steps and --shapes", Error);
}
