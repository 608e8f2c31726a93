// Hugging Face configurations: what they become, what is refused, and that they plan.
#include "workloads/hf_config.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

Model public_model(const std::string& name) {
    return read_hf_model(testing::source_folder() / "tests/data/hf" / (name + ".json"));
}

double parameters(const Model& model) {
    std::int64_t sum = 0;
    for (const auto& module : model.modules) sum += all_parameters(module.architecture);
    for (const auto& edge : model.edges) sum += projector_parameters(edge);
    return static_cast<double>(sum);
}

const std::string small_llama =
    R"({"model_type":"llama","hidden_size":256,"intermediate_size":512,"num_hidden_layers":4,)"
    R"("num_attention_heads":8,"vocab_size":1000})";

Model parsed(std::string text, const std::string& from = "", const std::string& to = "") {
    if (!from.empty()) {
        REQUIRE(text.find(from) != std::string::npos);
        text.replace(text.find(from), from.size(), to);
    }
    return parse_hf_model(JsonDocument("c.json", text), "mine");
}

std::string refusal(const std::string& from, const std::string& to) {
    try {
        static_cast<void>(parsed(small_llama, from, to));
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("public configurations have the parameters that are published for them") {
    struct Case {
        std::string name;
        double published;
    };
    for (const Case& c : {Case{"llama-3-8b", 8.03e9}, Case{"qwen2.5-32b", 32.76e9}, Case{"qwen2.5-vl-7b", 8.29e9},
                          Case{"qwen2.5-vl-72b", 73.41e9}, Case{"internvl2.5-38b", 38.4e9}}) {
        CAPTURE(c.name);
        const auto model = public_model(c.name);
        CHECK(model.name == c.name);
        CHECK(parameters(model) == doctest::Approx(c.published).epsilon(0.01));
        CHECK(parse_model(JsonDocument("again", to_json(model))) == model);
    }
}

TEST_CASE("a configuration of Qwen2.5-VL gives its windows, merge, projector and language model") {
    const auto model = public_model("qwen2.5-vl-7b");
    REQUIRE(model.modules.size() == 2);
    const auto& vit = model.modules[0].architecture;
    const auto& llm = model.modules[1].architecture;
    CHECK((vit.layers == 32 && vit.hidden == 1280 && vit.ffn == 3420 && vit.gated && vit.head_dim == 80));
    CHECK(vit.attention.window == 64);  // 112 / 14 squared
    CHECK(vit.attention.full_layers == std::vector<std::int64_t>{7, 15, 23, 31});
    CHECK((llm.layers == 28 && llm.kv_heads == 4 && llm.head_dim == 128 && llm.qkv_bias && llm.vocab == 152064));
    CHECK((model.edges[0].token_reduction == 4 && model.edges[0].projector_in == 5120 &&
           model.edges[0].projector_hidden == 5120 && model.edges[0].projector_out == 3584));
    CHECK(model.image.merge == 2);
}

TEST_CASE("blocks of Qwen2.5-VL's encoder that see whole images are those of its class where a file has none") {
    std::string text = read_file(testing::source_folder() / "tests/data/hf/qwen2.5-vl-7b.json");
    const std::size_t key = text.find("\"fullatt_block_indexes\""), end = text.find("],", key);
    REQUIRE((key != std::string::npos && end != std::string::npos));
    text.erase(key, end + 2 - key);
    const auto model = parse_hf_model(JsonDocument("c.json", text), "mine");
    CHECK(model.modules[0].architecture.attention == public_model("qwen2.5-vl-7b").modules[0].architecture.attention);
    REQUIRE(!model.assumed.empty());
    CHECK(std::any_of(model.assumed.begin(), model.assumed.end(), [](const std::string& one) {
        return one.find("7, 15, 23, 31: there is no fullatt_block_indexes") != std::string::npos;
    }));
    const std::size_t depth = text.find("\"depth\": 32");
    REQUIRE(depth != std::string::npos);
    text.replace(depth, 11, "\"depth\": 20");
    CHECK(parse_hf_model(JsonDocument("c.json", text), "mine").modules[0].architecture.attention.full_layers ==
          std::vector<std::int64_t>{7, 15});
}

TEST_CASE("the same text configuration nested, as newer files have it, is the same model") {
    const std::string vision =
        R"("vision_config":{"depth":2,"embed_dim":64,"mlp_ratio":4,"num_heads":2,"patch_size":14})";
    const std::string text =
        R"("num_key_value_heads":2,)" + small_llama.substr(std::string(R"({"model_type":"llama",)").size());
    const auto flat = parsed(R"({"model_type":"qwen2_vl",)" + vision + "," + text);
    const auto nested = parsed(R"({"model_type":"qwen2_vl",)" + vision + R"(,"text_config":{)" + text + "}");
    CHECK(flat == nested);
    CHECK(flat.modules[0].architecture.ffn == 256);
    CHECK(!flat.modules[0].architecture.gated);
}

TEST_CASE("defaults of transformers' classes hold where a key is missing or null, unknown keys are passed over") {
    const auto plain = parsed(small_llama).modules[0].architecture;
    CHECK((plain.kv_heads == 8 && plain.head_dim == 32 && !plain.qkv_bias && !plain.tied_embeddings));
    CHECK(parsed(small_llama, "{", R"({"head_dim":null,"num_key_value_heads":null,"x":{"y":1},)") ==
          parsed(small_llama));
    const std::vector<std::string> said{
        "as many key and value heads as attention heads: there is no num_key_value_heads",
        "embedding and output head are two weights: there is no tie_word_embeddings"};
    CHECK(parsed(small_llama).assumed == said);
    CHECK(parsed(small_llama, "{", R"({"num_key_value_heads":2,"tie_word_embeddings":false,)").assumed.empty());
    const auto qwen3 = parsed(small_llama, "\"llama\"", "\"qwen3\"").modules[0].architecture;
    CHECK((qwen3.head_dim == 128 && qwen3.attention.qk_norm && !qwen3.qkv_bias));
    const auto assumed = parsed(small_llama, "\"llama\"", "\"qwen3\"").assumed;
    CHECK(std::count(assumed.begin(), assumed.end(), "heads of 128, as its class has them: there is no head_dim") == 1);
    CHECK(parsed(small_llama, "\"llama\"", "\"qwen2\"").modules[0].architecture.qkv_bias);
    CHECK(parsed(small_llama, "{", R"({"tie_word_embeddings":true,)").modules[0].architecture.tied_embeddings);
}

TEST_CASE("what is not read is named with what is missing for it") {
    CHECK(refusal("\"llama\"", "\"qwen22\"") ==
          "c.json: model_type: unknown model type 'qwen22'; did you mean 'qwen2'?; start from \"pipeweaver show "
          "qwen2.5-7b\", or from what \"pipeweaver show\" prints of this file");
    CHECK(refusal("\"llama\"", "\"internvl_chat\"") ==
          "c.json: the key 'llm_config' is missing; start from \"pipeweaver show internvl3-38b\"");
    CHECK(refusal("\"hidden_size\":256,", "") ==
          "c.json: the key 'hidden_size' is missing; start from \"pipeweaver show llama3-8b\"");
    CHECK(refusal("\"model_type\":\"llama\",", "").starts_with("c.json: the key 'model_type' is missing"));
    CHECK(refusal("256", "-256").starts_with("c.json: hidden_size: is -256, must be a whole number from 1"));
    CHECK(refusal("\"num_attention_heads\":8", "\"num_attention_heads\":7") ==
          "c.json: hidden_size (256) is no multiple of num_attention_heads (7)");
    CHECK(refusal("{", R"({"num_key_value_heads":3,)").find("must be a divisor of heads (8)") != std::string::npos);
}

TEST_CASE("a configuration named config.json is named after its folder, which may be given as well") {
    const testing::TemporaryFolder folder("hf-config");
    const auto place = folder.path() / "My-Model";
    std::filesystem::create_directory(place);
    std::ofstream(place / "config.json") << small_llama;
    CHECK(read_hf_model(place).name == "My-Model");
    CHECK(read_hf_model(place / "config.json") == read_hf_model(place));
    CHECK(find_model(place.string()) == read_hf_model(place));  // as with hf: before it
}

TEST_CASE("public configurations plan without editing") {
    struct Case {
        std::string name;
        std::int64_t tp, pp;
    };
    const std::vector<Case> all{Case{"llama-3-8b", 2, 4}, Case{"qwen2.5-32b", 8, 4}, Case{"qwen2.5-vl-7b", 4, 2},
                                Case{"qwen2.5-vl-72b", 8, 8}, Case{"internvl2.5-38b", 1, 16}};
    for (std::size_t n = 0; n < testing::full_or_short(all.size(), std::size_t{1}); ++n) {
        const Case& c = all[all.size() - 1 - n];  // with a vision tower first
        CAPTURE(c.name);
        planner::Request request;
        const emulator::Layout layout{.tp = c.tp, .pp = c.pp, .dp = 1};
        request.job.setup = std::make_shared<emulator::Setup>(emulator::Setup{
            public_model(c.name), testing::small_cluster(layout.gpus()), layout, testing::small_costs()});
        const bool sees = request.job.setup->model.modules.size() > 1;
        request.batch.microbatches = testing::small_batch(sees ? std::vector{5, 0, 2, 9} : std::vector{0, 0, 0, 0});
        for (std::size_t i = 0; i < 4; ++i)
            request.batch.samples.push_back({std::string("s") + std::to_string(i), 1024, 1024, {}});
        request.job.max_rounds = 1;
        const auto plan = testing::planned(request);
        CHECK(plan.makespan >= plan.lower_bound);
        CHECK(plan.lower_bound > Duration{0});
        for (const auto& baseline : plan.baselines.all) CHECK(plan.makespan <= baseline.makespan);
    }
}

TEST_CASE("samples that are longer than max_position_embeddings are counted in a line") {
    const Model m = parsed(small_llama, "{", R"({"max_position_embeddings":4096,)");
    CHECK(m.most_positions == 4096);
    CHECK(parse_model(JsonDocument("again.json", to_json(m))) == m);
    const auto said = [&](std::int64_t length) {
        return assumed_sizes("", {{"a", 4096, 4096, {}}, {"b", length, 0, {}}}, m);
    };
    CHECK(said(4096).empty());
    CHECK(said(4097) == std::vector<std::string>{"1 of 2 samples are longer than the 4096 positions of the model "
                                                 "(max_position_embeddings), the longest has 4097: most trainings cut "
                                                 "or drop them"});
    CHECK(parsed(small_llama).most_positions == 0);
}
