// Cuts in words, and cuts whose layers are moved from stage to stage.
#include "pipeweaver/partition/said_layers.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/partition/tune.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::partition;

namespace {

emulator::Setup small() { return testing::small_setup({.tp = 2, .pp = 4, .dp = 1}); }

std::vector<std::int64_t> counts_of(const Partition& cut) {
    std::vector<std::int64_t> counts;
    for (const auto& stage : cut.chains.front().stages) {
        counts.push_back(0);
        for (const auto& part : stage.parts) counts.back() += part.count;
    }
    return counts;
}

void check_refused(const std::string& text, const std::string& why) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(static_cast<void>(cut_by_layers(small(), parse_layers(text))), doctest::Contains(why.c_str()),
                         Error);
}

}  // namespace

TEST_CASE("every chain is said in words that make it again") {
    const auto setup = small();
    const Sample sample = testing::small_batch({5, 0, 2, 9});
    for (const char* name : {"first-stage", "balanced", "megatron", "uniform"})
        for (const std::int64_t chunks : {1, 2}) {
            CAPTURE(name);
            const Partition cut = partitioner(name).make(setup, sample, chunks);
            const std::string text = text_of(said_layers(setup.model, cut));
            if (std::string(name) == "first-stage") CHECK(text.find(':') == std::string::npos);
            const Partition again = cut_by_layers(setup, parse_layers(text));
            CHECK(text_of(said_layers(setup.model, again)) == text);
            CHECK(counts_of(again) == counts_of(cut));
            CHECK(again.chunks_per_rank == chunks);
            CHECK(text_of(parse_layers(text)) == text);
        }
}

TEST_CASE("equal stages are said in one") {
    const auto said = parse_layers("vit:7x3,0,0/llm:0x2,1,10x2");
    REQUIRE(said.size() == 2);
    CHECK(said[0].layers == std::vector<std::int64_t>{7, 7, 7, 0, 0});
    CHECK(said[1].layers == std::vector<std::int64_t>{0, 0, 1, 10, 10});
    CHECK(text_of(said) == "vit:7x3,0,0/llm:0,0,1,10,10");
    for (const char* wrong : {"7x", "x3", "7x0", "7x3x2", "-1x2"})
        CHECK_THROWS_AS(static_cast<void>(parse_layers(wrong)), Error);
}

TEST_CASE("words that are no chain are refused by name") {
    const auto setup = small();
    const auto& modules = setup.model.modules;
    REQUIRE(modules.size() == 2);
    const std::string vit = modules[0].name, llm = modules[1].name;
    const auto vits = modules[0].architecture.layers, llms = modules[1].architecture.layers;
    REQUIRE(vits >= 2);
    REQUIRE(llms >= 4);
    const std::string rest = std::to_string(llms - 3);
    check_refused("1,2", "has 2 stages");
    check_refused("1,1,1,1000", "adds up to 1003");
    check_refused("no:1,1,1,1", "has no module 'no'");
    check_refused(vit + ":1,0,0," + std::to_string(vits - 1) + "/" + llm + ":1,1,1," + rest, "allowed is one chain");
    check_refused(llm + ":1,1,1," + rest + "/" + vit + ":" + std::to_string(vits) + ",0", "others have 4");
    check_refused(llm + ":" + std::to_string(llms) + ",0,0,0", "a stage has no layer");
}

TEST_CASE("a cut is tuned to the shortest step that moves of layers lead to, on any number of threads") {
    const auto setup = small();
    const Partition uneven = partitioner("first-stage").make(setup, testing::small_batch({9, 9, 9, 9}), 1);
    // Shortest where the stages are as even as they can be.
    const Tuning tuning{.step_of = [](const Partition& cut) -> std::optional<Duration> {
                            std::int64_t squares = 0;
                            for (const std::int64_t count : counts_of(cut)) squares += count * count;
                            return Duration{squares};
                        },
                        .most_steps = 1000};
    const auto tuned = tune(setup, uneven, tuning, in_order);
    REQUIRE(tuned);
    const auto counts = counts_of(tuned->partition);
    CHECK(*std::max_element(counts.begin(), counts.end()) - *std::min_element(counts.begin(), counts.end()) <= 1);
    CHECK(tuned->step == *tuning.step_of(tuned->partition));
    CHECK(tuned->partition.name == "tuned");
    const auto again = tune(setup, uneven, tuning, on_threads(4));
    REQUIRE(again);
    CHECK(counts_of(again->partition) == counts);
    CHECK(!tune(setup, tuned->partition, tuning, in_order));
}

TEST_CASE("tuning ends with its questions, its time, or what does not run") {
    const auto setup = small();
    const Partition cut = partitioner("first-stage").make(setup, testing::small_batch({9, 9, 9, 9}), 1);
    std::size_t asked = 0;
    Tuning tuning{.step_of = [&](const Partition&) -> std::optional<Duration> {
                      return Duration{1'000'000 - static_cast<std::int64_t>(++asked)};
                  },
                  .most_steps = 40};
    CHECK(tune(setup, cut, tuning, in_order));
    CHECK(asked <= 40);
    tuning.is_over = [] { return true; };
    CHECK(!tune(setup, cut, tuning, in_order));
    tuning.is_over = nullptr;
    tuning.step_of = [](const Partition&) { return std::optional<Duration>(); };
    CHECK(!tune(setup, cut, tuning, in_order));
}

TEST_CASE("tuning leaves the encoders' stage the layers that their framework asks for") {
    auto setup = small();
    const Tuning tuning{.step_of = [](const Partition& cut) { return std::optional(Duration{counts_of(cut).front()}); },
                        .most_steps = 1000};
    const auto front_of = [&] {
        const Partition heavy = cut_by_layers(setup, parse_layers("5,1,1,1"));
        const auto tuned = tune(setup, heavy, tuning, in_order);
        REQUIRE(tuned);
        return counts_of(tuned->partition).front();
    };
    CHECK(front_of() < 9);  // six layers of the encoder
    workloads::build_as(setup.model, {.framework = "a", .source = "b", .first_layers = 3});
    CHECK(front_of() == 9);
}

TEST_CASE("a said cut whose first stage has too few layers for the framework's encoder is refused with what it asks") {
    auto setup = small();
    CHECK_NOTHROW(static_cast<void>(cut_by_layers(setup, parse_layers("2,2,2,2"))));
    workloads::build_as(setup.model, {.framework = "a", .source = "b", .first_layers = 3});
    CHECK_THROWS_WITH_AS(
        static_cast<void>(cut_by_layers(setup, parse_layers("2,2,2,2"))),
        "--layers: the first stage has 2 layers of llm, a needs 3 beside its encoder (b); allowed with "
        "--encoders split is any",
        Error);
    CHECK_NOTHROW(static_cast<void>(cut_by_layers(setup, parse_layers("3,2,2,1"))));
}
