// How encoders lie: the rows of frameworks, and what options make of them. What options say is trained.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/frameworks/built_encoders.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/way.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using workloads::Lies;
using workloads::OnContextRanks;
using workloads::OnTensorRanks;

namespace {

workloads::Model model_of(const std::string& model, const std::string& target, const std::string& encoders = {}) {
    WorkloadOptions options;
    options.model = model;
    options.target = target;
    options.encoders = encoders;
    return options.found_model();
}

std::string qwen3_vl() { return "hf:" + (testing::source_folder() / "tests/data/hf/qwen3-vl-8b.json").string(); }

}  // namespace

TEST_CASE("a row names its source, and no framework has two for a family") {
    const auto rows = frameworks::built_encoders();
    REQUIRE(rows.size() > 8);
    std::set<std::string> seen;
    for (const workloads::Built& row : rows) {
        CAPTURE(row.families);
        CHECK(row.source.find(':') != std::string_view::npos);
        CHECK(row.lies.is_as_job() == (row.framework == "veomni"));  // which shares out all modules alike
        std::string families(row.families);
        for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
            end = families.find('|', at);
            CHECK(seen.insert(std::string(row.framework) + " " + families.substr(at, end - at)).second);
        }
    }
    for (const Target& one : targets())
        for (const std::string_view by : one.builders) {
            const auto all = frameworks::builders();
            CHECK(std::find(all.begin(), all.end(), by) != all.end());
        }
}

TEST_CASE("Megatron-Bridge's rows are what its sources build") {
    const std::array by{std::string_view("megatron-bridge")};
    struct Family {
        std::string_view name;
        OnTensorRanks lies;
        std::int64_t first_layers, most_cp;
    };
    for (const Family& one :
         {Family{"qwen3_vl", OnTensorRanks::all_positions, 3, 0},
          Family{"qwen3_vl_moe", OnTensorRanks::all_positions, 3, 0},
          Family{"qwen3_5", OnTensorRanks::all_positions, 0, 0},
          Family{"qwen3_5_moe", OnTensorRanks::all_positions, 0, 0}, Family{"qwen2_5_vl", OnTensorRanks::whole, 0, 1},
          Family{"glm4v", OnTensorRanks::whole, 0, 1}, Family{"glm4v_moe", OnTensorRanks::whole, 0, 1},
          Family{"gemma3", OnTensorRanks::whole, 0, 1}, Family{"gemma4", OnTensorRanks::whole, 0, 0},
          Family{"qwen2_audio", OnTensorRanks::whole, 0, 1}, Family{"mistral3", OnTensorRanks::whole, 0, 0},
          Family{"kimi_k25", OnTensorRanks::whole, 0, 0}, Family{"qwen2_5_omni", OnTensorRanks::whole, 0, 0},
          Family{"qwen3_omni_moe", OnTensorRanks::whole, 3, 0},
          Family{"nemotron_vl", OnTensorRanks::all_positions, 0, 0}}) {
        CAPTURE(one.name);
        const auto* row = frameworks::built_encoder(by, one.name);
        REQUIRE(row != nullptr);
        CHECK(row->lies == Lies{one.lies, OnContextRanks::each});
        CHECK(row->first_layers == one.first_layers);
        CHECK(row->most_cp == one.most_cp);
        CHECK(row->averages_gradients == (one.lies == OnTensorRanks::whole));
        const bool deals = one.name.starts_with("qwen3_vl") || one.name.starts_with("qwen3_5");
        CHECK(row->deals.empty() == !deals);
    }
}

namespace {

// A request for Megatron on 64 GPUs, of a few microbatches.
Request on_64_gpus(const std::string& model, std::int64_t cp) {
    WorkloadOptions options;
    options.model = model;
    options.cluster = "h200-sxm:64";
    options.dataset = "vlm-mix";
    options.microbatches = 1;
    options.target = "megatron";
    options.tp = {2, false};
    options.cp = {cp, false};
    options.pp = {4, false};
    return options.request(1, in_order);
}

// Layers of a module on a stage.
std::int64_t layers_of(const emulator::StageLayers& stage, std::size_t module) {
    std::int64_t layers = 0;
    for (const emulator::LayerRange& part : stage.parts)
        if (part.module == module) layers += part.count;
    return layers;
}

}  // namespace

TEST_CASE("of the catalogue's models every cut that is launched is one that Megatron-Bridge builds") {
    const std::array by{std::string_view("megatron-bridge")};
    const Target& megatron = target("megatron");
    for (const std::string name :
         {"qwen2.5-vl-3b", "qwen2.5-vl-7b", "qwen2.5-vl-32b", "qwen3-vl-4b", "qwen3-vl-8b", "qwen3-vl-32b",
          "qwen3-vl-30b-a3b", "qwen3.5-9b", "gemma-3-12b", "gemma-4-31b", "glm-4.5v", "qwen2.5-omni-7b"}) {
        CAPTURE(name);
        const Request request = on_64_gpus(name, 1);
        const emulator::Setup& setup = *request.job.setup;
        const auto* row = frameworks::built_encoder(by, setup.model.family);
        REQUIRE(row != nullptr);
        CHECK(setup.model.built == *row);
        std::size_t launched = 0;
        for (const partition::Cutting& one : partition::cuttings(partition::Use::opponent, setup)) {
            if (one.why_not(setup)) continue;
            const Way way{.name = one.by->name,
                          .setup = request.job.setup,
                          .partition = one.make(setup, request.batch.microbatches),
                          .policy = one.chunks_per_rank > 1 ? "interleaved" : "1f1b"};
            const auto& stages = way.partition.chains.front().stages;
            if (!launches(megatron, way)) continue;
            const std::int64_t first = layers_of(stages.front(), setup.model.backbone());
            ++launched;
            CHECK(way.partition.chains.size() == 1);
            CHECK(first >= row->first_layers);
            for (std::size_t m = 0; m < setup.model.backbone(); ++m)
                CHECK(layers_of(stages.front(), m) == setup.model.modules[m].architecture.layers);
        }
        CHECK(launched > 0);
        if (row->most_cp == 1)
            CHECK_THROWS_WITH_AS(static_cast<void>(on_64_gpus(name, 2)),
                                 doctest::Contains("for 1 context parallel group at most"), Error);
        else
            CHECK(on_64_gpus(name, 2).job.setup->layout.cp == 2);
    }
}

TEST_CASE("under a target an encoder lies as the first of its frameworks with a row builds it") {
    const auto qwen = model_of("qwen2.5-vl-7b", "megatron");
    CHECK(qwen.modules[0].lies == Lies{OnTensorRanks::whole, OnContextRanks::each});
    CHECK(qwen.modules[1].lies.is_as_job());
    REQUIRE(qwen.built);
    CHECK(qwen.built->framework == "megatron-bridge");
    CHECK(how_built(qwen) ==
          "vit: whole on each tensor parallel GPU, all images on each context parallel group, never recomputed, "
          "as megatron-bridge builds it");
    const auto intern = model_of("internvl3-38b", "megatron");
    CHECK(intern.built->framework == "megatron-lm");
    CHECK(intern.modules[0].lies == Lies{OnTensorRanks::all_positions, OnContextRanks::each});
    CHECK_FALSE(model_of("qwen2.5-vl-7b", "free").built);
    CHECK(how_built(model_of("qwen2.5-vl-7b", "free")).empty());
    CHECK_FALSE(model_of("llama3-8b", "megatron").built);
}

TEST_CASE("a configuration's model_type is the family, whose DeepStack layers are on the first stage") {
    const auto model = model_of(qwen3_vl(), "megatron");
    CHECK(model.family == "qwen3_vl");
    CHECK(workloads::first_layers(model) == 3);
    CHECK(model.built->loss_per_token);
    CHECK(workloads::first_layers(model_of(qwen3_vl(), "free")) == 0);
}

TEST_CASE("what no row covers is priced as split, and a line says so") {
    const auto model = model_of("dip-vlm-s", "megatron");
    CHECK(model.modules[0].lies.is_as_job());
    CHECK(how_built(model) ==
          "vit: priced as split over tensor and context parallel GPUs; how megatron-bridge builds it was not read, and "
          "it may build it in another way");
}

TEST_CASE("heads of InternViT that tensor parallel GPUs do not divide are padded where the row says so") {
    WorkloadOptions options;
    options.model = "internvl2.5-78b";
    options.cluster = "a100-sxm:32";
    options.dataset = "vlm-mix";
    options.target = "megatron";
    options.tp = {8, false};
    options.pp = {4, false};
    options.dp = {1, false};
    const auto padded = options.job(1, in_order).setup->model;
    const auto& vit = padded.modules[0].architecture;
    CHECK((vit.heads == 32 && vit.kv_heads == 32 && vit.head_dim == 128));
    CHECK(padded.assumed.back() == "the 25 heads of 'vit' are padded to 32, as megatron-lm pads them");
    // Seven more heads of queries, keys, values and output.
    const auto as_released = options.found_model().modules[0].architecture;
    CHECK(layer_parameters(vit, 0) - layer_parameters(as_released, 0) == 4LL * 3200 * 7 * 128);
    options.tp = {5, false};
    options.dp = {1, false};
    options.cluster = "a100-sxm:20";
    CHECK_THROWS_WITH_AS(static_cast<void>(options.job(1, in_order)), doctest::Contains("64 attention heads"), Error);
    options.encoders = "split";
    options.tp = {8, false};
    options.cluster = "a100-sxm:32";
    CHECK_THROWS_WITH_AS(static_cast<void>(options.job(1, in_order)), doctest::Contains("25 attention heads"), Error);
}

TEST_CASE("each layout pads the heads that the model has, and no more") {
    WorkloadOptions options;
    options.model = "internvl2.5-26b";
    options.cluster = "h200-sxm:16";
    options.dataset = "vlm-mix";
    options.target = "megatron";
    options.tp = {8, false};
    options.pp = {2, false};
    options.dp = {1, false};
    const auto setup = options.job(1, in_order).setup;
    const auto in = [&](std::int64_t tp) {
        return emulator::with_layout(*setup, {.tp = tp, .pp = 2, .dp = 8 / tp}).model;
    };
    const auto heads = [](const workloads::Model& model) { return model.modules[0].architecture.heads; };
    CHECK((heads(setup->model) == 32 && heads(in(4)) == 28 && heads(in(2)) == 26));
    CHECK(in(2).assumed.back() == "the 25 heads of 'vit' are padded to 26, as megatron-lm pads them");
    CHECK(in(2).assumed.size() == setup->model.assumed.size());
    // As the command of that layout has it, and whole again where nothing is padded.
    CHECK(in(1) == options.found_model());
    CHECK(in(8) == setup->model);
    options.tp = {1, false};
    options.pp = {4, false};
    options.dp = {4, false};
    const auto unpadded = options.job(1, in_order).setup;
    CHECK(heads(unpadded->model) == 25);
    const emulator::Layout other{.tp = 8, .pp = 2, .dp = 1};
    CHECK_FALSE(conflict(other, unpadded->model));
    CHECK(emulator::with_layout(*unpadded, other).model == setup->model);
}

TEST_CASE("other encoders of the family keep their heads, whatever does not divide them") {
    auto model = model_of("internvl2.5-8b", "megatron");
    const auto as_built = model;
    REQUIRE(model.modules[0].architecture.heads == 16);
    workloads::pad_as_built(model, 32);
    CHECK(model == as_built);
    CHECK(emulator::conflict({.tp = 32}, model));
}

TEST_CASE("what of encoders runs again may be said in place of what their framework does") {
    WorkloadOptions options;
    options.model = "qwen2.5-vl-7b";
    options.target = "megatron";
    CHECK(options.found_model().built->recompute == workloads::EncoderRecompute::never);
    for (const std::string& name : workloads::encoder_recompute_names()) {
        options.encoder_recompute = name;
        CHECK(workloads::name_of(options.found_model().built->recompute) == name);
    }
    CHECK_FALSE(workloads::encoder_recompute_called("sometimes"));
    const auto switch_of = [&](const char* model, const char* said, const char* by = "") {
        options.model = model;
        options.encoder_recompute = said;
        options.encoders = by;
        return workloads::recompute_switch(*options.found_model().built);
    };
    CHECK(switch_of("internvl3-38b", "").empty());
    CHECK(switch_of("internvl3-38b", "never").empty());
    CHECK(switch_of("internvl3-38b", "as-backbone") == "--recompute-vision");
    CHECK(switch_of("internvl3-38b", "always").empty());  // no setting turns it to that
    CHECK(switch_of("qwen2.5-vl-7b", "never", "ms-swift") == "--vit-gradient-checkpointing false");
    CHECK(switch_of("qwen2.5-vl-7b", "as-backbone").empty());  // Bridge has no setting for it
}

TEST_CASE("images are dealt where the framework has a switch for it, and the line says which") {
    WorkloadOptions options;
    options.model = qwen3_vl();
    options.target = "megatron";
    CHECK(how_built(options.found_model())
              .ends_with("; --deal-images, model.vision_dp_when_cp=true, deals images over "
                         "context parallel groups"));
    options.deal_images = true;
    const auto model = options.found_model();
    CHECK(model.modules[0].lies == Lies{OnTensorRanks::all_positions, OnContextRanks::dealt});
    CHECK(how_built(model).ends_with(" with model.vision_dp_when_cp=true"));
    options.cluster = "h100-sxm:8";
    options.tp = {2, false};
    options.pp = {2, false};
    CHECK(options.job(1, in_order).setup->model.built->lies.context == OnContextRanks::dealt);
    options.model = "qwen2.5-vl-7b";
    CHECK_THROWS_WITH_AS(
        static_cast<void>(options.job(1, in_order)),
        "--deal-images: megatron-bridge has no switch for it for 'qwen2.5-vl-7b'; allowed is to leave it "
        "out",
        Error);
}

TEST_CASE("--encoders names another framework, or the language model's way") {
    CHECK(model_of("qwen2.5-vl-7b", "megatron", "split").modules[0].lies.is_as_job());
    CHECK(model_of("qwen2.5-vl-7b", "free", "ms-swift").built->framework == "ms-swift");
    CHECK(model_of("qwen2.5-vl-7b", "megatron", "as-built").built->framework == "megatron-bridge");
    CHECK_THROWS_WITH_AS(static_cast<void>(model_of("dip-vlm-s", "free", "ms-swift")),
                         "--encoders: how ms-swift builds the encoders of 'dip-vlm-s' was not read; allowed are split "
                         "and frameworks that have it (docs/encoders.md)",
                         Error);
}

TEST_CASE("a stage of a recipe trains the parts that are named, and freezes the others") {
    WorkloadOptions options;
    options.model = "qwen2.5-vl-7b";
    const auto trained = [&](const std::string& parts) {
        options.trained = parts;
        const workloads::Model model = options.found_model();
        std::vector<bool> all;
        for (const workloads::Module& module : model.modules) all.push_back(module.trainable);
        all.push_back(model.edges.front().projector_trainable.value_or(true));
        return all;
    };
    REQUIRE(options.found_model().modules.size() == 2);
    CHECK(trained("projectors") == std::vector{false, false, true});
    CHECK(trained("llm,projectors") == std::vector{false, true, true});
    CHECK(trained("llm") == std::vector{false, true, false});
    CHECK(trained("all") == std::vector{true, true, true});
    CHECK_THROWS_WITH_AS(static_cast<void>(trained("projector")),
                         "--train: is 'projector', must be one of all, vit, llm, projectors", Error);
}

TEST_CASE("a teacher is named, and said to be assumed where it lies") {
    WorkloadOptions options;
    options.model = "qwen2.5-vl-7b";
    options.teacher = "qwen2.5-vl-72b";
    const workloads::Model model = options.found_model();
    REQUIRE(model.teacher.size() == 1);
    CHECK(model.teacher.front().name == "qwen2.5-vl-72b");
    CHECK(workloads::parameters_by_module(model) == "vit 0.63 B, llm 7.62 B parameters, of the teacher " +
                                                        workloads::parameters_by_module(model.teacher.front()));
    CHECK(model.assumed.back().starts_with("the teacher 'qwen2.5-vl-72b' lies frozen on the same GPUs"));
    options.reference = true;
    CHECK_THROWS_WITH_AS(static_cast<void>(options.found_model()),
                         "--teacher: 'qwen2.5-vl-7b' has a reference beside it; allowed is one of the two", Error);
    options.reference = false;
    options.teacher = "llama3-8b";
    CHECK_THROWS_WITH_AS(static_cast<void>(options.found_model()), doctest::Contains("has other modules"), Error);
    options.teacher = "Own/Teacher-of-Mine";
    CHECK_THROWS_WITH_AS(static_cast<void>(options.found_model()),
                         doctest::Contains("--teacher: there is no file 'Own/Teacher-of-Mine'"), Error);
}
