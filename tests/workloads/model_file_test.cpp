#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

const std::string vlm = R"({"format":"pipeweaver-model/1","name":"mine",
 "modules":[{"name":"llm","architecture":"llama3-8b","unit":"microbatch","modalities":["text"]},
            {"name":"vit","architecture":{"name":"tiny","kind":"vit","layers":4,"hidden":64,"ffn":256,"heads":8,
                                          "patch_size":14},"unit":"items","modalities":["image"],"trainable":false}],
 "edges":[{"from":"vit","to":"llm","token_reduction":4,"projector":{"in":256,"out":4096}}],
 "image":{"patch":14,"merge":2}})";

// The file with one text in place of another, which must be there once.
std::string with(const std::string& before, const std::string& after) {
    std::string text = vlm;
    const std::size_t place = text.find(before);
    REQUIRE(place != std::string::npos);
    return text.replace(place, before.size(), after);
}

std::string problem(const std::string& text) {
    try {
        static_cast<void>(parse_model(JsonDocument("m.json", text)));
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "read";
}

}  // namespace

TEST_CASE("a model file may name networks of the catalogue, modules are put in topological order") {
    const Model m = parse_model(JsonDocument("m.json", vlm));

    REQUIRE(m.modules.size() == 2);
    CHECK(m.modules[0].name == "vit");
    CHECK(!m.modules[0].trainable);
    CHECK(m.modules[0].architecture.head_dim == 8);
    CHECK(m.modules[0].architecture.kv_heads == 8);
    CHECK(!m.modules[0].architecture.attention.causal);
    CHECK(m.modules[1].architecture == architecture("llama3-8b"));
    CHECK(m.edges == std::vector{ModelEdge{0, 1, 4, 256, 4096, 0}});
    CHECK(m.backbone() == 1);
    CHECK(parse_model(JsonDocument("again.json", to_json(m))) == m);
}

TEST_CASE("a frozen module may have adapters, on all projections or on some") {
    const auto adapted = [](const std::string& adapters) {
        return with("\"architecture\":\"llama3-8b\"", "\"architecture\":\"llama3-8b\",\"adapters\":" + adapters);
    };
    const Model all = parse_model(JsonDocument("m.json", adapted("{\"rank\":16}")));
    CHECK(all.modules[1].adapters == Adapters{.rank = 16});
    CHECK((!all.modules[1].trainable && all.modules[1].trains()));
    CHECK(parse_model(JsonDocument("again.json", to_json(all))) == all);
    const Model some = parse_model(JsonDocument("m.json", adapted("{\"rank\":4,\"on\":[\"qkv\",\"down\"]}")));
    CHECK(some.modules[1].adapters == Adapters{4, true, false, false, true});
    CHECK(parse_model(JsonDocument("again.json", to_json(some))) == some);
    CHECK(problem(adapted("{\"rank\":4},\"trainable\":true")) ==
          "m.json: modules[0].trainable: is true: adapters go with frozen weights");
    CHECK(problem(adapted("{\"rank\":4,\"on\":[]}")) == "m.json: modules[0].adapters.on: is empty");
}

TEST_CASE("adapters of routed experts, adapters apart and multi-token prediction are read as they are written") {
    Model model = workloads::model("qwen3-30b-a3b");
    auto& module = model.modules[0];
    module.trainable = false;
    for (const auto experts : {ExpertAdapters::none, ExpertAdapters::each, ExpertAdapters::together}) {
        module.adapters = Adapters{.rank = 8, .experts = experts, .apart = experts == ExpertAdapters::each};
        CHECK(parse_model(JsonDocument("m.json", to_json(model))).modules[0].adapters == module.adapters);
    }
    module.architecture.predicted_layers = 2;
    const Model again = parse_model(JsonDocument("m.json", to_json(model)));
    CHECK(again.modules[0].architecture.predicted_layers == 2);
    CHECK(to_json(again) == to_json(model));
    CHECK(problem(with("\"architecture\":\"llama3-8b\"",
                       "\"architecture\":\"llama3-8b\",\"adapters\":{\"rank\":4,\"experts\":\"each\"}")) ==
          "m.json: modules[0].adapters.experts: a network without experts has none");
}

TEST_CASE("unknown names in a model file are refused with the nearest") {
    CHECK(problem(with("\"unit\"", "\"units\"")) == "m.json: modules[0]: unknown key 'units'; did you mean 'unit'?");
    CHECK(problem(with("\"llama3-8b\"", "\"llama3-9b\"")) ==
          "m.json: modules[0].architecture: unknown network 'llama3-9b'; did you mean 'llama3-8b'?");
    CHECK(problem(with("\"from\":\"vit\"", "\"from\":\"vid\"")) ==
          "m.json: edges[0].from: unknown module 'vid'; did you mean 'vit'?");
    CHECK(problem(with("\"kind\":\"vit\"", "\"kind\":\"vif\"")) ==
          "m.json: modules[1].architecture.kind: is 'vif', must be one of llm, vit, audio_encoder, text_encoder, dit, "
          "head "
          "(did you mean 'vit'?)");
    CHECK(problem(with("pipeweaver-model/1", "pipeweaver-model/2")) ==
          "m.json: format: is 'pipeweaver-model/2', this program reads 'pipeweaver-model/1'");
}

TEST_CASE("sizes in a model file are in range and agree") {
    const std::string a = "m.json: modules[1].architecture";
    CHECK(problem(with("\"layers\":4", "\"layers\":0")) == a + ".layers: is 0, must be a whole number from 1 to 10000");
    CHECK(problem(with("\"hidden\":64", "\"hidden\":-64")) ==
          a + ".hidden: is -64, must be a whole number from 1 to 1000000");
    CHECK(problem(with("\"hidden\":64", "\"hidden\":1e99")) ==
          a + ".hidden: is 1e+99, must be a whole number from 1 to 1000000");
    CHECK(problem(with("\"hidden\":64", "\"hidden\":63")) ==
          a + ": hidden (63) is no multiple of heads (8): head_dim is needed");
    CHECK(problem(with("\"heads\":8", "\"heads\":8,\"kv_heads\":3")) ==
          a + ".kv_heads: is 3, must be a divisor of heads (8)");
    CHECK(problem(with("\"heads\":8", "\"heads\":8,\"vocab\":3")) == a + ".vocab: a network of kind 'vit' has none");
    CHECK(problem(with(",\n                                          \"patch_size\":14", "")) ==
          a + ": the key 'patch_size' is missing");
    CHECK(problem(with("\"patch\":14", "\"patch\":16")) ==
          "m.json: image: patch is 16, but the patches of 'vit' have 14 pixels");
    CHECK(problem(with("\"merge\":2", "\"merge\":4")) ==
          "m.json: image: merge is 4, but the edge from 'vit' makes one token of 4: merge * merge is needed there");
    CHECK(problem(with("\"in\":256", "\"in\":0")) ==
          "m.json: edges[0].projector.in: is 0, must be a whole number from 1 to 10000000");
    CHECK(problem(with("\"in\":256", "\"in\":63")) ==
          "m.json: edges: 'vit' to 'llm': in of the projector is 63, must be 64 (hidden of 'vit') to 256 (that of "
          "token_reduction patches)");
    CHECK(problem(with("\"in\":256", "\"in\":257")).find("in of the projector is 257") != std::string::npos);
    CHECK(problem(with("\"out\":4096", "\"out\":4095")) ==
          "m.json: edges: 'vit' to 'llm': out of the projector is 4095, needed is 4096 (hidden of 'llm')");
    CHECK(problem(with("\"ffn\":256",
                       "\"ffn\":256,\"moe\":{\"moe_layers\":3,\"first_layer\":2,\"experts\":8,\"top_k\":2,"
                       "\"expert_ffn\":64}")) ==
          a + ".moe: 3 MoE layers from layer 2 on, every 1, do not fit into 4 layers");
    CHECK(problem(with("\"ffn\":256",
                       "\"ffn\":256,\"moe\":{\"moe_layers\":3,\"experts\":8,\"top_k\":9,\"expert_ffn\":64}")) ==
          a + ".moe.top_k: is 9, must be a whole number from 1 to 8");
}

TEST_CASE("modules have different names, one backbone, and paths to it without cycles") {
    CHECK(problem(with("\"name\":\"vit\"", "\"name\":\"llm\"")) == "m.json: modules[1].name: 'llm' is given twice");
    CHECK(problem(with("\"unit\":\"items\"", "\"unit\":\"microbatch\"")) ==
          "m.json: modules: 2 modules have the unit 'microbatch', exactly one must: the backbone");
    CHECK(problem(with("\"unit\":\"microbatch\"", "\"unit\":\"items\"")) ==
          "m.json: modules: 0 modules have the unit 'microbatch', exactly one must: the backbone");
    CHECK(problem(with("\"to\":\"llm\"", "\"to\":\"vit\"")) == "m.json: edges: the modules form a cycle");
    CHECK(problem(with("\"edges\":[", "\"edges\":[{\"from\":\"llm\",\"to\":\"vit\"},")) ==
          "m.json: edges: the modules form a cycle");
    CHECK(problem(with("\"edges\":[", "\"edges\":[{\"from\":\"vit\",\"to\":\"llm\"},")) ==
          "m.json: edges[1]: joins the same modules as an earlier edge");
    CHECK(problem(with("\"edges\":[{\"from\":\"vit\",\"to\":\"llm\",\"token_reduction\":4,\"projector\":{\"in\":256,"
                       "\"out\":4096}}],",
                       "")) == "m.json: modules: no path of edges joins 'vit' and the backbone 'llm'");
}

TEST_CASE("a rule is needed for every modality, and none for others") {
    CHECK(problem(with(",\n \"image\":{\"patch\":14,\"merge\":2}", "")) == "m.json: the key 'image' is missing");
    CHECK(problem(with("\"image\":{", "\"audio\":{\"frames_per_second\":50,\"tokens_per_second\":25},\"image\":{")) ==
          "m.json: audio: no module has this modality");
    CHECK(problem(with("\"merge\":2", "\"merge\":2,\"fixed_pixels\":448,\"max_tokens\":9")) ==
          "m.json: image: min_tokens and max_tokens are for native resolution, not beside fixed_pixels");
    CHECK(problem(with("[\"image\"]", "[]")) == "m.json: modules[1].modalities: is empty");
    CHECK(problem(with("[\"image\"]", "[\"image\",\"image\"]")) == "m.json: modules[1].modalities[1]: is given twice");
}

TEST_CASE("a model file with any one character lost is read or refused as bad input, never more") {
    const std::string whole = to_json(model("qwen2.5-vl-7b"));
    int refused_files = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string text = whole;
        text.erase(i, 1);
        refused_files += problem(text) == "read" ? 0 : 1;
    }
    CHECK(refused_files > 500);
    CHECK(refused_files < static_cast<int>(whole.size()));
}

TEST_CASE("a head is conditioned on the width of what it follows") {
    std::string text = to_json(model("nextstep-1-14b"));
    const std::size_t at = text.find("\"condition_dim\": 5120");
    REQUIRE(at != std::string::npos);
    text.replace(at, 21, "\"condition_dim\": 5121");
    CHECK(problem(text) ==
          "m.json: edges: 'llm' to 'head': condition_dim of the head is 5121, needed is the width of 'llm', 5120");
}

TEST_CASE("a video rule has a width and height that clips are scaled to, or neither") {
    const std::string file = to_json(model("wan2.1-t2v-14b"));
    const auto without = [](std::string text, const std::string& key) {
        const std::size_t at = text.find("\"" + key + "\"");
        REQUIRE(at != std::string::npos);
        return text.erase(at, text.find(',', at) + 1 - at);
    };
    for (const char* key : {"width", "height"})
        CHECK(problem(without(file, key)) ==
              "m.json: video: has one of width and height, allowed are both (clips are scaled to them) or neither "
              "(clips keep their own)");
    const Model own = parse_model(JsonDocument("own.json", without(without(file, "width"), "height")));
    CHECK((own.video.width == 0 && own.video.height == 0 && own.video.keeps_sizes()));
    CHECK(to_json(own).find("\"width\"") == std::string::npos);
    CHECK(parse_model(JsonDocument("again.json", to_json(own))) == own);
    CHECK(usual_latents(own) == usual_latents(model("wan2.1-t2v-14b")));
}

TEST_CASE("a diffusion transformer alone need not say how many latents a microbatch holds") {
    const Model named = model("wan2.1-t2v-14b");
    CHECK((named.microbatch_tokens == 131'072 && named.microbatch_tokens_of_file == 0));
    const std::string file = to_json(named);
    CHECK(file.find("microbatch_tokens") == std::string::npos);
    const Model again = parse_model(JsonDocument("again.json", file));
    CHECK(again == named);
    CHECK(usual_latents(again) == 64 * 448);  // its longest clip: 256 frames are 1 + 255 / 4 latent ones
    CHECK(usual_latents(model("flux.1-dev")) == 16'384);
    const Model said = parse_model(JsonDocument("said.json", "{\"microbatch_tokens\":40000," + file.substr(1)));
    CHECK((said.microbatch_tokens == 40'000 && !said.microbatch_tokens_of_file));
}

TEST_CASE("a model file may have a teacher that reads the same tokens") {
    const auto taught = [](const std::string& teacher) {
        return with("\"image\":", "\"teacher\":" + teacher + ",\"image\":");
    };
    const Model m = parse_model(JsonDocument("m.json", taught(vlm)));
    REQUIRE(m.teacher.size() == 1);
    CHECK(m.teacher.front() == parse_model(JsonDocument("m.json", vlm)));
    CHECK(parse_model(JsonDocument("again.json", to_json(m))) == m);
    CHECK(model_beside(m)->name == "mine");
    CHECK(!model_beside(m.teacher.front()));

    const std::string alone = R"({"name":"text","modules":[{"name":"llm","architecture":"llama3-8b",
        "unit":"microbatch","modalities":["text"]}]})";
    CHECK(problem(taught(alone)) ==
          "m.json: teacher: 'text' has other modules than 'mine'; allowed are as many, of the "
          "same kinds, that read the same items");
    std::string smaller = vlm;
    smaller.replace(smaller.find("\"merge\":2"), 9, "\"merge\":2,\"max_tokens\":100");
    CHECK(problem(taught(smaller)) ==
          "m.json: teacher: 'mine' makes other tokens of images, clips or audio than "
          "'mine'; allowed are the same rules");
    CHECK(problem(taught(taught(vlm))) == "m.json: teacher: 'mine' has a model beside itself; allowed is one without");
    std::string both = taught(vlm);
    both.replace(both.find("\"edges\""), 0, "\"reference\":true,");
    CHECK(problem(both) == "m.json: teacher: 'mine' has a reference beside it; allowed is one of the two");
}

TEST_CASE("images come to whole tokens in one of four ways, each with its limits") {
    const auto read = [](const std::string& keys) {
        return parse_model(JsonDocument("m.json", with("\"merge\":2", "\"merge\":2," + keys)));
    };
    const auto image_problem = [](const std::string& keys) {
        return problem(with("\"merge\":2", "\"merge\":2," + keys));
    };
    for (const char* keys : {"\"max_tokens\":9", "\"resize\":\"side\",\"longest_side\":1540",
                             "\"resize\":\"pad\",\"max_tokens\":1024", "\"resize\":\"fill\",\"max_tokens\":280"}) {
        CAPTURE(keys);
        CHECK(parse_model(JsonDocument("again.json", to_json(read(keys)))) == read(keys));
    }
    CHECK(read("\"resize\":\"side\",\"longest_side\":1540").image.max_tokens == 55 * 55);
    CHECK(image_problem("\"longest_side\":99") == "m.json: image.longest_side: goes with \"resize\": \"side\"");
    CHECK(image_problem("\"resize\":\"side\",\"longest_side\":99,\"max_tokens\":4") ==
          "m.json: image.max_tokens: goes without \"resize\": \"side\", which has longest_side");
    CHECK(image_problem("\"resize\":\"pad\",\"min_tokens\":4") ==
          "m.json: image.min_tokens: goes with \"resize\": \"round\"");
    CHECK(image_problem("\"resize\":\"fill\"") ==
          "m.json: image: the key 'max_tokens' is missing: images are filled up to it");
}

TEST_CASE("a diffusion transformer's attention says what it leaves out, of all layers or of each") {
    const auto dit = [](const std::string& sparsity, const std::string& kind = "dit") {
        return R"({"format":"pipeweaver-model/1","name":"mine","modules":[{"name":"dit","unit":"microbatch",
            "modalities":["image"],"architecture":{"name":"tiny","kind":")" +
               kind + R"(","layers":2,"hidden":64,"ffn":256,"heads":2,"kv_heads":2,"head_dim":32,"in_channels":64,
            "attention":{"causal":false,"sparsity":)" +
               sparsity + R"(}}}],"image":{"patch":32,"max_tokens":400},"microbatch_tokens":512})";
    };
    const auto attention = [&](const std::string& sparsity) {
        return parse_model(JsonDocument("m.json", dit(sparsity))).modules.front().architecture.attention;
    };
    CHECK(attention("0.9").sparsity == std::vector<double>{0.9});
    CHECK(attention("[0,0.5]").sparsity == std::vector<double>{0, 0.5});
    CHECK(attention(R"(0.9,"sparsity_rank":32)").sparsity_rank == 32);
    CHECK(problem(dit("1.5")).find("sparsity: is 1.5, must be a number from 0 to 1") != std::string::npos);
    CHECK(problem(dit("[0,-0.1]")).find("must be a number from 0 to 1") != std::string::npos);
    CHECK(problem(dit("[0,0.1,0.2]")).find("has 3 numbers, allowed are one or one for each of the 2 layers") !=
          std::string::npos);
    CHECK(problem(dit("0.5", "head")) != "read");
    const auto model = parse_model(JsonDocument("m.json", dit("[0,0.5]")));
    CHECK(parse_model(JsonDocument("again", to_json(model))).modules == model.modules);
}
