#include "pipeweaver/workloads/catalogue.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

TEST_CASE("every model of the catalogue can be made, and names its source and confidence") {
    std::set<std::string> names;
    for (const auto& name : model_names()) {
        CAPTURE(name);
        const Model m = model(name);
        CHECK(names.insert(name).second);
        CHECK(m.name == name);
        CHECK(!m.source.empty());
        CHECK(!m.confidence.empty());
        CHECK(m.modules.at(m.backbone()).unit == PassUnit::microbatch);
    }
}

TEST_CASE("every model of the catalogue comes back equal from its file") {
    for (const auto& name : model_names()) {
        CAPTURE(name);
        const Model m = model(name);
        const std::string file = to_json(m);
        CHECK(parse_model(JsonDocument("m.json", file)) == m);
        CHECK(to_json(parse_model(JsonDocument("m.json", file))) == file);
    }
}

TEST_CASE("every language model, vision encoder and diffusion transformer is a model alone") {
    const auto names = model_names();
    for (const auto& network : architectures()) {
        const bool alone = network.kind == ModuleKind::language_model || network.kind == ModuleKind::vision_encoder ||
                           network.kind == ModuleKind::diffusion_transformer;
        CAPTURE(network.name);
        CHECK((std::find(names.begin(), names.end(), network.name) != names.end()) == alone);
    }
}

TEST_CASE("dip-vlm-m is a ViT of 5 B in front of Qwen2 32 B, 48 images of 169 tokens at most") {
    const Model m = model("dip-vlm-m");

    REQUIRE(m.modules.size() == 2);
    CHECK(m.modules[0].architecture.name == "step3-vit-5b");
    CHECK(m.modules[0].unit == PassUnit::items);
    CHECK(m.modules[1].architecture.name == "qwen2-32b");
    CHECK(m.backbone() == 1);
    CHECK(m.edges == std::vector{ModelEdge{0, 1, 16, 1792, 5120, 0}});
    CHECK(m.microbatch_tokens == 8192);
    CHECK(m.most_items == 48);
    CHECK(m.tp == 8);
    CHECK(m.pp == 4);
    CHECK(m.dp == 1);
    CHECK(m.assumed.size() == 1);
    // 37 B in the paper
    const auto parameters = matrix_parameters(m.modules[0].architecture) + matrix_parameters(m.modules[1].architecture);
    CHECK(parameters / 1'000'000'000 == 37);
}

TEST_CASE("the nine published set-ups have their layouts") {
    struct SetUp {
        const char* name;
        std::int64_t tp, pp, dp, gpus;
    };
    for (const auto& s :
         {SetUp{"dip-vlm-s", 4, 4, 1, 16}, SetUp{"dip-vlm-m", 8, 4, 1, 32}, SetUp{"dip-vlm-l", 8, 8, 1, 64},
          SetUp{"dip-t2v-s", 4, 4, 1, 16}, SetUp{"dip-t2v-l", 8, 8, 1, 64}, SetUp{"dip-vlm-xl-8k", 8, 8, 128, 8192},
          SetUp{"dip-vlm-xl-16k", 8, 16, 128, 16384}, SetUp{"dip-t2v-xl-3k", 8, 4, 96, 3072},
          SetUp{"dip-t2v-xl-6k", 8, 8, 96, 6144}}) {
        CAPTURE(s.name);
        const Model m = model(s.name);
        CHECK(m.tp == s.tp);
        CHECK(m.pp == s.pp);
        CHECK(m.dp == s.dp);
        CHECK(m.tp * m.pp * m.dp == s.gpus);
        const bool video = std::string_view(s.name).find("t2v") != std::string_view::npos;
        CHECK(m.modules[video ? 1 : 0].unit == PassUnit::items);
        CHECK(m.most_items == (video ? 8 : 48));
        CHECK(m.most_video_seconds == (video ? 16 : 0));
    }
}

TEST_CASE("frozen encoders are frozen") {
    CHECK(!model("step-audio-2-mini").modules[0].trainable);
    CHECK(model("step-audio-2-mini").modules[1].trainable);
    CHECK(!model("step-video-t2v-30b").modules[0].trainable);
}

TEST_CASE("an unknown model or network is refused with the nearest name") {
    CHECK_THROWS_WITH_AS(model("dip-vlm-n"), "unknown model 'dip-vlm-n'; did you mean 'dip-vlm-s'?", Error);
    CHECK_THROWS_WITH_AS(architecture("llama3-9b"), "unknown network 'llama3-9b'; did you mean 'llama3-8b'?", Error);
}

TEST_CASE("entries that cannot be used are listed with their reason, and asking for one gives it") {
    std::vector<std::string> names;
    for (const auto& entry : refused()) {
        names.push_back(entry.name);
        CHECK(!entry.reason.empty());
    }
    CHECK(names == std::vector<std::string>{"step-audio-tokenizer", "sd-vae-f8", "flux-vae-f8c16", "step-video-vae",
                                            "hunyuanvideo-vae", "wan2.1-vae", "sd2.1-unet", "sdxl-unet", "step1x-edit",
                                            "disttrain-mllm-9b", "disttrain-mllm-15b", "disttrain-mllm-72b"});
    CHECK_THROWS_WITH_AS(model("disttrain-mllm-9b"),
                         "the model 'disttrain-mllm-9b' cannot be used: its generator is a U-Net (sd2.1-unet)", Error);
}
