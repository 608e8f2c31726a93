// How rungs are launched: as data, as a file, in Megatron's words.
#include "pipeweaver/launch/launch.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/launch/megatron_words.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/ladder.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::launch;

namespace {

Launch small(std::vector<std::int64_t> layers = {0, 3, 3, 3, 3, 3, 3, 2}) {
    Launch launch{.rung = "flags",
                  .target = "megatron",
                  .way = "first-stage interleaved, 2 chunks",
                  .model = "small",
                  .device = "h100_sxm",
                  .degrees = {.tp = 2, .pp = 4, .dp = 2},
                  .language = "llm",
                  .policy = "interleaved",
                  .recompute = "none",
                  .microbatches = {8, 8},
                  .step = Duration{2'000'000},
                  .makespan = Duration{1'900'000},
                  .peak = {Bytes{5}, Bytes{9}, Bytes{7}, Bytes{1}},
                  .usable = Bytes{10}};
    launch.split = {.ranks = 4, .layers = std::move(layers)};
    launch.split.encoders = {{"vit", std::vector<std::int64_t>(launch.split.layers.size())}};
    launch.split.encoders.front().layers.front() = 24;
    for (std::int64_t layer = 0; layer < launch.split.depth(); ++layer) launch.letters.emplace_back("*-");
    return launch;
}

std::string flags_of(const Launch& launch) {
    std::string text;
    for (const LaunchSetting& one : megatron_settings(launch))
        for (const std::string& word : one.flag) text += word + " ";
    return text;
}

std::string recompute_of(Launch launch, const std::string& recompute) {
    launch.recompute = recompute;
    const RecomputeWords words = recompute_words(launch);
    std::string text = words.why_not;
    for (const LaunchSetting& one : words.settings)
        for (const std::string& word : one.flag) text += word + " ";
    return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a launch file is read back as it was written") {
    Launch launch = small();
    launch.frozen = {"vit"};
    launch.shapes = 7;
    launch.vision["vit"] = {24, 1024, 4096, true};
    launch.deals = "model.deals=true";
    const std::string text = to_json(launch);
    CHECK(parse_launch(JsonDocument("launch.json", text)).deals == launch.deals);
    CHECK(to_json(parse_launch(JsonDocument("launch.json", text))) == text);
    CHECK(parse_launch(JsonDocument("launch.json", text)).shapes == 7);
    launch.recompute = "by-rank";
    launch.recompute_of_ranks = {"none", "full", "blocks:2", "selective"};
    launch.dealt = {"audio"};
    launch.degrees.ring = true;
    const std::string other = to_json(launch);
    CHECK(to_json(parse_launch(JsonDocument("launch.json", other))) == other);
    CHECK(other != text);
}

TEST_CASE("what is trained, and states on the host, are read back, and a file that says them otherwise is refused") {
    Launch launch = small();
    launch.adapters["llm"] = {.rank = 8, .up = false, .experts = workloads::ExpertAdapters::each, .apart = true};
    launch.trains_projectors = launch.freezes_projectors = true;
    launch.state_on_gpu = 9;
    launch.state_on_host = 3;
    const std::string text = to_json(launch);
    const Launch again = parse_launch(JsonDocument("launch.json", text));
    CHECK(again.adapters == launch.adapters);
    CHECK(again.trains_projectors);
    CHECK(again.freezes_projectors);
    CHECK(again.state_on_host == 3);
    CHECK(to_json(again) == text);
    const auto wrong = [&](const std::string& what, const std::string& by) {
        std::string other = text;
        other.replace(other.find(what), what.size(), by);
        return other;
    };
    for (const std::string& other : {wrong("\"some\"", "\"none\""), wrong("\"host\": 3", "\"host\": 0"),
                                     wrong("\"rank\": 8", "\"rank\": 0"), wrong("\"apart\"", "\"aparts\"")})
        CHECK_THROWS_AS(static_cast<void>(parse_launch(JsonDocument("launch.json", other))), Error);
}

TEST_CASE("frozen parts and adapters are keys of a recipe and flags of ms-swift, as far as these say them") {
    const auto keys = [](const Launch& launch) {
        std::string text;
        for (const LaunchSetting& one : megatron_settings(launch))
            if (one.key.starts_with("model.freeze") || one.key.starts_with("peft") || one.key.starts_with("optimizer"))
                text += one.key + "=" + one.value + " ";
        return text;
    };
    const auto swift = [](const Launch& launch) {
        std::string text;
        for (const Flag& one : swift_tuning(launch))
            text += one.name + " " + one.value + (one.value.empty() ? "" : " ");
        return text;
    };
    Launch launch = small();
    launch.trains_projectors = true;
    CHECK(keys(launch).empty());
    CHECK(swift(launch) == "--tuner_type full --freeze_llm false --freeze_vit false --freeze_aligner false ");
    launch.frozen = {"vit"};
    CHECK(keys(launch) ==
          "model.freeze_language_model=false model.freeze_vision_model=true model.freeze_vision_projection=false ");
    launch.adapters["llm"] = {.rank = 16};
    CHECK(why_no_megatron(launch) == "a projector is trained whole beside adapters");
    launch.trains_projectors = false;
    launch.freezes_projectors = true;
    CHECK(!why_no_megatron(launch));
    CHECK(keys(launch) ==
          "model.freeze_language_model=false model.freeze_vision_model=true model.freeze_vision_projection=true "
          "peft.dim=16 peft.target_modules=[linear_qkv,linear_proj,linear_fc1,linear_fc2] ");
    CHECK(swift(launch) ==
          "--tuner_type lora --lora_rank 16 --target_modules all-linear --freeze_llm false --freeze_vit true "
          "--freeze_aligner true ");
    launch.adapters["llm"].down = false;
    CHECK(swift(launch).empty());  // names of some layers are encoders', too
    launch.frozen.clear();
    CHECK(why_no_megatron(launch) == "'vit' is trained whole beside adapters of 'llm'");
    launch.adapters["vit"] = {.rank = 8, .down = false};
    CHECK(why_no_megatron(launch) == "adapters of 'vit' are not those of 'llm'");
    launch.adapters["vit"] = launch.adapters["llm"];
    CHECK(!why_no_megatron(launch));
    for (auto& [module, adapters] : launch.adapters) adapters.apart = true;
    CHECK(why_no_megatron(launch)->find("--lora-apart") != std::string::npos);
}

TEST_CASE("adapters of routed experts are Megatron-Bridge's or ms-swift's") {
    using enum workloads::ExpertAdapters;
    Launch launch = small();
    launch.split.encoders.clear();
    launch.letters.assign(launch.letters.size(), "*E");
    const auto with = [&](workloads::ExpertAdapters experts) {
        launch.adapters["llm"] = {.rank = 16, .experts = experts};
        std::string text = why_no_megatron(launch) ? "refused" : "";
        for (const LaunchSetting& one : megatron_settings(launch)) text += one.key == "peft.dim" ? "bridge" : "";
        return text + (swift_tuning(launch).empty() ? "" : "swift");
    };
    CHECK(with(together) == "bridge");
    CHECK(with(each) == "swift");
    CHECK(with(none) == "refused");
}

TEST_CASE("a fraction of states on the host leaves what the plan has on the GPU") {
    Launch launch = small();
    for (std::int64_t host = 1; host <= 12; ++host) {
        launch.state_on_host = host;
        launch.state_on_gpu = 12 - host;
        std::string text;
        for (const LaunchSetting& one : megatron_settings(launch))
            if (one.key == "optimizer.optimizer_offload_fraction") text = one.value;
        REQUIRE(!text.empty());
        CHECK(with_offloaded(emulator::StateBytes{}, std::stod(text)).optimizer == 12 - host);
    }
    CHECK(flags_of(launch).find("--use-precision-aware-optimizer --optimizer-cpu-offload") != std::string::npos);
    launch.degrees.zero = 0;
    CHECK(why_no_megatron(launch) == "states on the host go with the distributed optimizer (zero 1)");
}

TEST_CASE("a rung that the target launches has its way, and Megatron runs it") {
    planner::Request request = testing::small_request(2);
    request.job.target = "megatron";
    const auto start = planner::begin_ladder({request}, {}, {}, in_order, {});
    REQUIRE(start.now);
    REQUIRE(start.now->launched);
    const Launch launch = launch_of(*start.now);
    CHECK_FALSE(why_no_megatron(launch).has_value());
    CHECK(launch.step == start.now->step);
    CHECK(*std::max_element(launch.peak.begin(), launch.peak.end()) == start.now->peak);
    CHECK(launch.all_microbatches() == static_cast<std::int64_t>(start.now->microbatches));
    const workloads::Model& model = request.job.setup->model;
    CHECK(launch.split.depth() == model.modules[model.backbone()].architecture.layers);
    REQUIRE(launch.split.encoders.size() == model.backbone());
    const workloads::Architecture& encoder = model.modules.front().architecture;
    CHECK(launch.split.encoders.front().layers.front() == encoder.layers);
    CHECK(launch.vision.at("vit") == VisionSizes{encoder.layers, encoder.hidden, encoder.ffn, encoder.image_size == 0});
    const std::string text = to_json(launch);
    CHECK(to_json(parse_launch(JsonDocument("launch.json", text))) == text);
}

TEST_CASE("users of Megatron and torchtitan launch no cut that has encoders behind the first stage") {
    const auto setup = std::make_shared<const emulator::Setup>(testing::small_setup({.tp = 2, .pp = 4, .dp = 1}));
    const workloads::Model& model = setup->model;
    partition::SaidLayers said;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        const std::int64_t all = model.modules[m].architecture.layers;
        said.push_back({model.modules[m].name, m < model.backbone() ? std::vector<std::int64_t>{all, 0, 0, 0}
                                                                    : std::vector<std::int64_t>{0, 1, 1, all - 2}});
    }
    const auto way = [&] {
        return planner::Way{.name = "said",
                            .setup = setup,
                            .partition = cut_by_layers(*setup, said),
                            .layers = partition::text_of(said),
                            .policy = "1f1b"};
    };
    CHECK(launches(planner::target("megatron"), way()));
    --said.front().layers[0];
    ++said.front().layers[1];
    CHECK(!launches(planner::target("megatron"), way()));
    CHECK(!launches(planner::target("torchtitan"), way()));
    CHECK(launches(planner::target("torch-csv"), way()));
}

TEST_CASE("where every GPU trains the whole model no other layout is launched, and nothing that shares out less") {
    const planner::Target& fsdp2 = planner::target("fsdp2");
    const auto way = [](const emulator::Layout& layout, int zero) {
        emulator::Setup setup = testing::small_setup(layout);
        setup.recipe.zero = zero;
        return planner::Way{
            .name = "flat", .has_pipeline = false, .setup = std::make_shared<const emulator::Setup>(std::move(setup))};
    };
    CHECK(launches(fsdp2, way({.dp = 8}, 3)));
    CHECK(launches(fsdp2, way({.dp = 8}, 2)));
    CHECK(!launches(fsdp2, way({.dp = 8}, 1)));
    CHECK(!launches(fsdp2, way({.tp = 2, .dp = 4}, 3)));
    CHECK(!launches(fsdp2, way({.dp = 4, .cp = 2}, 3)));
    CHECK(!launches_in(fsdp2, {.pp = 2, .dp = 4}));
    CHECK(!launches_in(fsdp2, {.dp = 4, .cp = 2}));
    const planner::Target& deepspeed = planner::target("deepspeed");
    CHECK(launches_in(deepspeed, {.dp = 4, .cp = 2}));
    CHECK(!launches_in(deepspeed, {.dp = 4, .cp = 2, .context = emulator::ContextParallel::ring}));
    CHECK(!launches(deepspeed, way({.dp = 4, .cp = 2}, 3)));  // the model has an encoder
    CHECK(launches(deepspeed, way({.dp = 8}, 1)));
    const planner::Target& torchtitan = planner::target("torchtitan");
    CHECK(launches_in(torchtitan, {.pp = 2, .dp = 4}));
    CHECK(launches_in(torchtitan, {.dp = 4, .cp = 2, .context = emulator::ContextParallel::ring}));
    CHECK(!launches_in(torchtitan, {.dp = 4, .cp = 2}));
    CHECK(launches_zero(torchtitan.launch, 0, {.dp = 4}));
    CHECK(launches_zero(torchtitan.launch, 0, {.tp = 4, .dp = 2, .ep = 2}));
    CHECK(!launches_zero(torchtitan.launch, 0, {.dp = 4, .ep = 2}));
    CHECK(!launches_zero(torchtitan.launch, 0, {.dp = 4, .cp = 2}));
    CHECK(!launches_zero(torchtitan.launch, 1, {.dp = 4}));
}

TEST_CASE("Megatron interleaves whole groups of microbatches alone") {
    for (const std::size_t images : {std::size_t{8}, std::size_t{6}}) {
        planner::Request request = testing::small_request(1, std::vector<int>(images, 2));
        request.job.target = "megatron";
        auto opponents = planner::choose_opponents(request.job, request.batch, in_order);
        const auto here = planner::launched_here(opponents, request.job);
        const bool interleaves = std::any_of(here.ways.begin(), here.ways.end(), [](const planner::OpponentWay& way) {
            return way.policy == "interleaved";
        });
        CHECK(interleaves == (images % 4 == 0));
        if (!interleaves)
            CHECK(std::any_of(opponents.not_applicable.begin(), opponents.not_applicable.end(),
                              [](const planner::NotApplicable& one) { return has(one.why, "leave a group of 2"); }));
    }
}

TEST_CASE("flags say degrees, batch and groups") {
    const std::string flags = flags_of(small());
    for (const char* part : {"--tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 4 ",
                             "--micro-batch-size 1 --global-batch-size 16 ",
                             "--microbatch-group-size-per-virtual-pipeline-stage 4 ", "--use-distributed-optimizer "})
        CHECK(has(flags, part));
    for (const char* part : {"--context-parallel", "--expert", "--recompute", "--overlap", "--moe-grouped"})
        CHECK(!has(flags, part));
    Launch experts = small();
    experts.letters.back() = "*E";
    experts.degrees.cp = 2;
    experts.degrees.zero = 0;
    experts.degrees.overlaps_gradients = true;
    const std::string more = flags_of(experts);
    for (const char* part : {"--context-parallel-size 2 --cp-comm-type a2a ", "--expert-model-parallel-size 1 ",
                             "--expert-tensor-parallel-size 1 ", "--moe-token-dispatcher-type alltoall ",
                             "--moe-grouped-gemm ", "--overlap-grad-reduce "})
        CHECK(has(more, part));
    CHECK(!has(more, "--use-distributed-optimizer"));
}

TEST_CASE("a recipe is told also what is the framework's default, as it may have another") {
    const auto value = [](const Launch& launch, std::string_view key) {
        const auto all = recipe_settings(launch);
        const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.key == key; });
        return found == all.end() ? "unsaid" : found->value;
    };
    const Launch piped = small();
    CHECK(value(piped, "model.context_parallel_size") == "1");
    CHECK(value(piped, "model.hidden_dropout") == "0");
    CHECK(value(piped, "model.virtual_pipeline_model_parallel_size") == std::to_string(piped.split.chunks()));
    Launch flat = small({20});
    flat.degrees.tp = flat.degrees.pp = 1;
    flat.degrees.zero = 0;
    flat.split.ranks = 1;
    flat.recompute = "none";
    CHECK(value(flat, "model.sequence_parallel") == "false");
    CHECK(value(flat, "model.recompute_granularity") == "null");
    CHECK(value(flat, "model.pipeline_model_parallel_layout") == "null");
    CHECK(value(flat, "model.virtual_pipeline_model_parallel_size") == "null");
    CHECK(value(flat, "ddp.use_distributed_optimizer") == "false");
}

TEST_CASE("recomputation is said in Megatron's words, or the rule is") {
    const Launch launch = small();
    CHECK(recompute_of(launch, "none").empty());
    CHECK(recompute_of(launch, "full") ==
          "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 ");
    CHECK(recompute_of(launch, "backbone") == recompute_of(launch, "full"));
    CHECK(recompute_of(launch, "blocks:2") ==
          "--recompute-granularity full --recompute-method block --recompute-num-layers 2 ");
    CHECK(has(recompute_of(launch, "selective"), "keep what activation functions of dense feed-forwards give"));
    CHECK(recompute_of(launch, "core-attention") == "--recompute-granularity selective --recompute-modules core_attn ");
    CHECK(has(recompute_of(launch, "half"), "recompute half is 2 layers of one stage and 1 of another"));
    CHECK(recompute_of(small({3, 3, 3, 3}), "half") ==
          "--recompute-granularity full --recompute-method block --recompute-num-layers 2 ");
    CHECK(has(recompute_of(launch, "offload"), "recompute offload"));
    Launch experts = small();
    experts.letters.assign(experts.letters.size(), "*E");
    CHECK(has(recompute_of(experts, "selective"), "keep what"));
    experts.split.encoders.clear();
    CHECK(has(recompute_of(experts, "selective"), "--recompute-modules layernorm moe_act"));
}

TEST_CASE("LoongForge's recomputation is a number for each rank") {
    Launch launch = small({2, 5, 5, 4});
    launch.recompute = "blocks:3";
    CHECK(spell_custom_recompute(launch).flags.back() == Flag{"--custom-pipeline-recompute-layers", "2,3,3,3"});
    launch.recompute = "by-rank";
    launch.recompute_of_ranks = {"full", "none", "blocks:1", "half"};
    CHECK(spell_custom_recompute(launch).flags.back() == Flag{"--custom-pipeline-recompute-layers", "2,0,1,2"});
    launch.recompute_of_ranks = {"full", "none", "selective", "half"};
    CHECK(has(spell_custom_recompute(launch).why_not, "selective is of parts of layers"));
    CHECK(has(spell_custom_recompute(small()).why_not, "several chunks"));
}

TEST_CASE("what Megatron does not run has its rule") {
    const auto why = [](auto change) {
        Launch launch = small();
        change(launch);
        return why_no_megatron(launch).value_or("none");
    };
    CHECK(why([](Launch&) {}) == "none");
    CHECK(has(why([](Launch& of) { of.policy = "gpipe"; }), "policy gpipe"));
    CHECK(has(why([](Launch& of) { of.microbatches = {10, 10}; }), "10 microbatches in groups of 4 leave 2"));
    CHECK(has(why([](Launch& of) { of.microbatches = {3, 3}; }), "3 microbatches are fewer"));
    CHECK(has(why([](Launch& of) { of.microbatches = {8, 9}; }), "8, 9 microbatches"));
    CHECK(has(why([](Launch& of) { of.degrees.zero = 2; }), "zero 2"));
    CHECK(has(why([](Launch& of) { of.split.encoders.front().layers[3] = 1; }), "stage 3 has 1 layers of vit"));
    CHECK(has(why([](Launch& of) { of.dealt = {"vit"}; }), "need one pipeline rank"));
}

TEST_CASE("grids are said where a module has a layout of its own") {
    Launch launch = small({20});
    launch.split.ranks = launch.degrees.pp = 1;
    CHECK(has(spell_mimo(launch).why_not, "grids are for modules with their own"));
    launch.split.encoders.clear();
    launch.dealt = {"vit"};
    const Spelled grids = spell_mimo(launch);
    REQUIRE(grids.says());
    const auto value = [&](const std::string& name) {
        for (const Flag& one : grids.flags)
            if (one.name == name) return one.value;
        return std::string("none");
    };
    CHECK(value("MIMO_LANGUAGE_TP") == "2");
    CHECK(value("MIMO_LANGUAGE_DP") == "2");
    CHECK(value("MIMO_IMAGES_TP") == "1");
    CHECK(value("MIMO_IMAGES_DP") == "4");
    CHECK(value("MIMO_IMAGES_OFFSET") == "0");
}

TEST_CASE("the first GPU of a rank is numbered behind all replicas of the ranks before it") {
    CHECK(first_gpu({.tp = 2, .cp = 2, .pp = 4, .dp = 3}, 0) == 0);
    CHECK(first_gpu({.tp = 2, .cp = 2, .pp = 4, .dp = 3}, 2) == 24);
    CHECK(small().fullest() == 1);
}

TEST_CASE("a switch that deals images is a key where there are context parallel groups") {
    Launch launch = small();
    launch.deals = "model.deals=true";
    const auto says = [&] {
        const auto all = megatron_settings(launch);
        return std::any_of(all.begin(), all.end(), [](const LaunchSetting& one) {
            return one.key == "model.deals" && one.value == "true" && one.flag.empty();
        });
    };
    CHECK_FALSE(says());
    launch.degrees.cp = 2;
    CHECK(says());
    launch.deals.clear();
    CHECK_FALSE(says());
}
