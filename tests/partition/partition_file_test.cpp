#include "pipeweaver/partition/partition_file.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::partition;
using Writer = nlohmann::ordered_json;

namespace {

void check_equal(const Partition& one, const Partition& other) {
    CHECK(one.name == other.name);
    CHECK(one.chunks_per_rank == other.chunks_per_rank);
    CHECK(one.unit_items == other.unit_items);
    CHECK(one.modes == other.modes);
    CHECK(one.layouts == other.layouts);
    REQUIRE(one.chains.size() == other.chains.size());
    for (std::size_t c = 0; c < one.chains.size(); ++c) {
        CHECK(one.chains[c].name == other.chains[c].name);
        REQUIRE(one.chains[c].stages.size() == other.chains[c].stages.size());
        for (std::size_t s = 0; s < one.chains[c].stages.size(); ++s) {
            const auto &a = one.chains[c].stages[s], &b = other.chains[c].stages[s];
            CHECK(a.rank == b.rank);
            REQUIRE(a.parts.size() == b.parts.size());
            for (std::size_t p = 0; p < a.parts.size(); ++p) {
                CHECK(a.parts[p].module == b.parts[p].module);
                CHECK(a.parts[p].first == b.parts[p].first);
                CHECK(a.parts[p].count == b.parts[p].count);
            }
        }
    }
}

struct Small {
    testing::SmallWorkload setup{{.tp = 2, .pp = 4, .dp = 1}, {5, 0, 2, 9}};

    std::string file(const char* partitioner_name, std::int64_t chunks) const {
        return to_json(
            {partitioner(partitioner_name).make(setup, setup.microbatches, chunks), {"mix", {101, 102}, 4, {}}}, setup);
    }
    PartitionFile read(const std::string& text) const {
        return parse_partition(JsonDocument("part.json", text), setup);
    }
    // What is said of the file of `dip`, or another, after a change.
    std::string refused(const std::function<void(Writer&)>& change, const char* of = "dip",
                        std::int64_t chunks = 0) const {
        Writer json = Writer::parse(file(of, chunks));
        change(json);
        try {
            static_cast<void>(read(json.dump()));
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            return error.what();
        }
        return "nothing";
    }
};

}  // namespace

TEST_CASE("a partition file gives its partition back, whatever cut it") {
    const Small small;
    for (const auto& [name, chunks] :
         {std::pair("dip", 0), std::pair("modules", 0), std::pair("balanced", 1), std::pair("balanced", 2),
          std::pair("megatron", 2), std::pair("first-stage", 1), std::pair("three-phase", 2)}) {
        const std::string text = small.file(name, chunks);
        const auto read = small.read(text);
        check_equal(read.partition, partitioner(name).make(small.setup, small.setup.microbatches, chunks));
        CHECK(read.chosen_on == ChosenOn{"mix", {101, 102}, 4, {}});
        CHECK(to_json(read, small.setup) == text);
    }
}

TEST_CASE("what a partition was chosen on is said as it was asked for") {
    CHECK(ChosenOn{"mix", {101, 102, 103, 108}, 16, {}}.text() == "mix, seeds 101-103, 108");
    CHECK(ChosenOn{"mix", {101, 102, 103, 108}, 16, {}}.option() == "101-103,108");
    CHECK(ChosenOn{{}, {}, 0, {"a.jsonl", "b.jsonl"}}.option() == "a.jsonl,b.jsonl");
    CHECK(ChosenOn{}.text() == "the batch itself");
}

TEST_CASE("a partition file of something else is refused with the key and what is allowed") {
    const Small small;
    using Case = std::pair<std::function<void(Writer&)>, std::string>;
    const auto stage = [](Writer& json, int module, int number) -> Writer& {
        return json["modules"][static_cast<std::size_t>(module)]["stages"][static_cast<std::size_t>(number)];
    };
    const std::vector<Case> cases{
        {[](Writer& j) { j["format"] = "pipeweaver-partition/2"; }, "pipeweaver-partition/2"},
        {[](Writer& j) { j["model"] = "other"; }, "part.json: model: is 'other', asked for is '"},
        {[](Writer& j) { j["model_sha256"] = "0"; }, "part.json: model_sha256: is of another"},
        {[](Writer& j) { j["layout"]["tp"] = 4; }, "part.json: layout.tp: is 4, asked for is 2"},
        {[](Writer& j) { j["layout"]["pp"] = 8; }, "part.json: layout.pp: is 8, asked for is 4"},
        {[](Writer& j) { j["modules"][0]["module"] = "vut"; }, "did you mean 'vit'"},
        {[](Writer& j) { j["modules"].erase(0); }, "modules[0].module: is 'llm', must be 'vit'"},
        {[](Writer& j) { j["modules"].erase(1); }, "part.json: modules: lacks module 'llm'"},
        {[](Writer& j) { j["modules"].push_back(j["modules"][1]); }, "modules[2].module: 'llm' is there twice"},
        {[](Writer& j) { j["modules"][0]["tp"] = 1; },
         "modules[0].tp: tp 1 x 1 copy of 'vit' are not the 2 GPUs of a rank; allowed with 'dealt' are 1, 2"},
        {[](Writer& j) { j["modules"][0]["copies"] = 2; },
         "modules[0].tp: tp 2 x 2 copies of 'vit' are not the 2 GPUs of a rank"},
        {[](Writer& j) { j["modules"][1]["tp"] = 1; },
         "modules[1].tp: 'llm' takes whole microbatches and has the tp of the job, 2"},
        {[](Writer& j) { j["modules"][0]["sharing"] = "halves"; }, "modules[0].sharing"},
        {[](Writer& j) { j["modules"][0]["unit_items"] = 1'000'000; },
         "modules[0].unit_items: is 1000000, which no microbatch"},
        {[](Writer& j) { j["modules"][1]["unit_items"] = 3; }, "modules[1].unit_items: is 3, must be"},
        {[&](Writer& j) { stage(j, 0, 1)["first_layer"] = 0; }, "modules[0].stages[1].first_layer: is 0, must be "},
        {[&](Writer& j) { stage(j, 0, 0)["layers"] = 1000; }, "modules[0].stages[0].layers: is 1000, must be"},
        {[&](Writer& j) { stage(j, 0, 0)["layers"] = 0; }, "modules[0].stages[0].layers: is 0, must be"},
        {[](Writer& j) { j["modules"][0]["stages"].erase(3); }, "modules[0].stages: has the layers 0 to "},
        {[&](Writer& j) { stage(j, 0, 2)["rank"] = 4; }, "modules[0].stages[2].rank: is 4, must be"},
        {[&](Writer& j) { stage(j, 0, 2)["stage"] = 7; }, "modules[0].stages[2].stage: is 7, must be 2"},
        {[](Writer& j) { j["modules"][0]["unit"] = 1; }, "unit"},
    };
    for (const Case& one : cases) {
        const std::string said = small.refused(one.first);
        CHECK_MESSAGE(said.find(one.second) != std::string::npos, said, " lacks ", one.second);
    }
}

TEST_CASE("a partition file keeps memory modes of its own, without the key they are the usual ones") {
    const Small small;
    Partition partition = partitioner("balanced").make(small.setup, small.setup.microbatches, 1);
    // Of what was launched, whole steps, too.
    partition.modes = {emulator::Recompute::none, emulator::Recompute::blocks(3), emulator::Recompute::full,
                       emulator::Recompute::second_products};
    const std::string text = to_json({partition, {}}, small.setup);
    CHECK(small.read(text).partition.modes == partition.modes);
    Writer json = Writer::parse(text);
    json.erase("memory_modes");
    CHECK(small.read(json.dump()).partition.modes == emulator::usual_modes());
    CHECK(small.refused([](Writer& file) {
        file["memory_modes"] = {"none", "some"};
    }) == "part.json: memory_modes[1]: is 'some', must be one of none, selective, second-products, core-attention, "
          "half, full, offload, encoders, backbone, blocks:N with N of 1 or more");
    CHECK(small.refused([](Writer& file) {
        file["memory_modes"] = {"full", "full"};
    }) == "part.json: memory_modes[1]: 'full' is there twice");
    CHECK(small.refused([](Writer& file) { file["memory_modes"] = Writer::array(); }) ==
          "part.json: memory_modes: is empty; allowed are one or more of none, selective, second-products, "
          "core-attention, half, full, offload, encoders, backbone, blocks:N");
}

TEST_CASE("a partition file that deals what cannot be dealt is refused") {
    const Small small;
    CHECK(small.refused([](Writer& file) { file["modules"][0]["copies"] = 4; }, "three-phase", 1) ==
          "part.json: modules[0].copies: is 4, must be a whole number from 8 to 8");
    CHECK(small.refused([](Writer& file) { file["modules"][0]["tp"] = 2; }, "three-phase", 1) ==
          "part.json: modules[0].tp: is 2, must be a whole number from 1 to 1");
    CHECK(small.refused([](Writer& file) { file["modules"][1]["chain"] = nullptr; }, "three-phase", 1) ==
          "part.json: modules[1].chain: is null, allowed for encoders alone, which 'llm' is not");
    CHECK(small.refused([](Writer& file) { file["modules"][0]["stages"] = file["modules"][1]["stages"]; },
                        "three-phase", 1) ==
          "part.json: modules[0].stages: are there, allowed is []: the module is in "
          "no chain");
}
