// Models of data/public_models.json: their parameters, and what else their configurations are known by.
#include "workloads/public_models.hpp"

#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

struct PublicWeights {
    std::string_view name;
    double billions;
};
// The number of elements of the published weights (model.safetensors.index.json or the model's page), in billions.
// Where embedding and output head are one weight, it counts once, though files of Qwen3-0.6B and -1.7B hold it twice.
// Without the layer that predicts a second token: Qwen3.5, whose weights hold 0.873, 2.274, 4.660 and 9.653 with it.
// Without what the reader leaves out and says so: 0.55 of gemma-4-31b. Figures of model cards: InternVL 3.5
// (OpenGVLab/InternVL README.md), GLM-4.5, Qwen3.5-122B-A10B and -397B-A17B, Qwen2.5-Omni (its thinker), FLUX.2,
// Nemotron 3 Ultra, Nemotron-H 56B, Ling 2. Of Nemotron 3 Nano Omni the 62 GiB of its weights; of Qwen2.5-Omni-3B its
// 5.54 less the talker's 0.39 and the 0.45 of what makes waves.
constexpr std::array published_weights{PublicWeights{"qwen2.5-0.5b", 0.494},
                                       PublicWeights{"qwen2.5-1.5b", 1.544},
                                       PublicWeights{"qwen2.5-3b", 3.086},
                                       PublicWeights{"qwen3-0.6b", 0.596},
                                       PublicWeights{"qwen3-1.7b", 1.721},
                                       PublicWeights{"qwen3-4b", 4.022},
                                       PublicWeights{"qwen3-14b", 14.768},
                                       PublicWeights{"qwen2-vl-2b", 2.209},
                                       PublicWeights{"qwen2-vl-7b", 8.291},
                                       PublicWeights{"qwen2-vl-72b", 73.406},
                                       PublicWeights{"qwen2.5-vl-3b", 3.755},
                                       PublicWeights{"qwen3-vl-2b", 2.127},
                                       PublicWeights{"qwen3-vl-4b", 4.438},
                                       PublicWeights{"qwen3-vl-8b", 8.767},
                                       PublicWeights{"qwen3-vl-32b", 33.36},
                                       PublicWeights{"qwen3-vl-30b-a3b", 31.07},
                                       PublicWeights{"qwen3-vl-235b-a22b", 235.7},
                                       PublicWeights{"internvl2.5-1b", 0.938},
                                       PublicWeights{"internvl2.5-2b", 2.206},
                                       PublicWeights{"internvl2.5-4b", 3.713},
                                       PublicWeights{"internvl2.5-8b", 8.075},
                                       PublicWeights{"internvl2.5-26b", 25.514},
                                       PublicWeights{"internvl2.5-38b", 38.388},
                                       PublicWeights{"internvl3-1b", 0.938},
                                       PublicWeights{"internvl3-2b", 2.089},
                                       PublicWeights{"internvl3-8b", 7.944},
                                       PublicWeights{"internvl3-14b", 15.12},
                                       PublicWeights{"internvl3.5-1b", 1.061},
                                       PublicWeights{"internvl3.5-2b", 2.348},
                                       PublicWeights{"internvl3.5-4b", 4.732},
                                       PublicWeights{"internvl3.5-8b", 8.528},
                                       PublicWeights{"internvl3.5-14b", 15.12},
                                       PublicWeights{"internvl3.5-38b", 38.4},
                                       PublicWeights{"internvl3.5-30b-a3b", 30.85},
                                       PublicWeights{"internvl3.5-241b-a28b", 240.7},
                                       PublicWeights{"llama3.2-1b", 1.236},
                                       PublicWeights{"llama3.2-3b", 3.213},
                                       PublicWeights{"llama-3.2-11b-vision", 10.67},
                                       PublicWeights{"gemma-2-2b", 2.614},
                                       PublicWeights{"gemma-2-9b", 9.242},
                                       PublicWeights{"gemma-2-27b", 27.227},
                                       PublicWeights{"gemma-3-1b", 1},
                                       PublicWeights{"gemma-3-4b", 4.3},
                                       PublicWeights{"gemma-3-12b", 12.187},
                                       PublicWeights{"gemma-3-27b", 27.432},
                                       PublicWeights{"mistral-7b-v0.1", 7.242},
                                       PublicWeights{"mistral-7b-v0.2", 7.242},
                                       PublicWeights{"mistral-7b-v0.3", 7.248},
                                       PublicWeights{"mistral-nemo-12b", 12.248},
                                       PublicWeights{"mistral-small-24b", 23.572},
                                       PublicWeights{"mistral-small-3.1-24b", 24.011},
                                       PublicWeights{"pixtral-12b", 12.68},
                                       PublicWeights{"mistral-large-123b", 122.61},
                                       PublicWeights{"ministral-3-3b", 3.85},
                                       PublicWeights{"ministral-3-8b", 8.92},
                                       PublicWeights{"ministral-3-14b", 13.95},
                                       PublicWeights{"phi-3-mini", 3.821},
                                       PublicWeights{"phi-3.5-mini", 3.821},
                                       PublicWeights{"phi-4", 14.66},
                                       PublicWeights{"phi-4-mini", 3.836},
                                       PublicWeights{"smollm2-135m", 0.1345},
                                       PublicWeights{"smollm2-360m", 0.3618},
                                       PublicWeights{"smollm2-1.7b", 1.711},
                                       PublicWeights{"smolvlm-2.2b", 2.246},
                                       PublicWeights{"smolvlm2-500m", 0.5075},
                                       PublicWeights{"idefics3-8b", 8.462},
                                       PublicWeights{"glm-4-9b-0414", 9.4},
                                       PublicWeights{"glm-4v-9b", 13.91},
                                       PublicWeights{"glm-4.1v-9b", 10.29},
                                       PublicWeights{"glm-4.5v", 107.7},
                                       PublicWeights{"glm-4.5", 355},
                                       PublicWeights{"llava-1.5-7b", 7.063},
                                       PublicWeights{"llava-1.5-13b", 13.35},
                                       PublicWeights{"llava-onevision-7b", 8.03},
                                       PublicWeights{"yi-6b", 6.061},
                                       PublicWeights{"yi-34b", 34.389},
                                       PublicWeights{"internlm2.5-1.8b", 1.889},
                                       PublicWeights{"internlm2.5-7b", 7.738},
                                       PublicWeights{"internlm2.5-20b", 19.861},
                                       PublicWeights{"kimi-vl-a3b", 16.41},
                                       PublicWeights{"qwen2-audio-7b", 8.397},
                                       PublicWeights{"qwen2.5-omni-7b", 8.93},
                                       PublicWeights{"deepseek-r1-distill-qwen-1.5b", 1.777},
                                       PublicWeights{"qwen3.5-0.8b", 0.853},
                                       PublicWeights{"qwen3.5-2b", 2.213},
                                       PublicWeights{"qwen3.5-4b", 4.54},
                                       PublicWeights{"qwen3.5-9b", 9.41},
                                       PublicWeights{"qwen3.5-397b-a17b", 397},
                                       PublicWeights{"internvl2-4b", 4.147},
                                       PublicWeights{"internvl2-40b", 40.07},
                                       PublicWeights{"internvl2-76b", 76.26},
                                       PublicWeights{"gemma-4-26b-a4b", 25.8},
                                       PublicWeights{"gemma-4-31b", 30.75},
                                       PublicWeights{"wan2.1-i2v-14b", 16.4},
                                       PublicWeights{"wan2.2-ti2v-5b", 5},
                                       PublicWeights{"cogvideox-5b", 5.57},
                                       PublicWeights{"flux.2-dev", 32.2},
                                       PublicWeights{"flux.2-klein-4b", 3.88},
                                       PublicWeights{"qwen1.5-moe-a2.7b", 14.316},
                                       PublicWeights{"seed-oss-36b", 36.151},
                                       PublicWeights{"minimax-m2", 228.69},
                                       PublicWeights{"deepseek-v3.2", 671.0},
                                       PublicWeights{"glm-5", 744.0},
                                       PublicWeights{"glm-4.7-flash", 30.0},
                                       PublicWeights{"hy3", 295.0},
                                       PublicWeights{"ernie-4.5-21b-a3b", 21.83},
                                       PublicWeights{"kimi-linear-48b-a3b", 49.12},
                                       PublicWeights{"nemotron-nano-12b-v2", 12.31},
                                       PublicWeights{"nemotron-3-super-120b-a12b", 120.67},
                                       PublicWeights{"falcon-h1-0.5b", 0.521},
                                       PublicWeights{"falcon-h1-3b", 3.149},
                                       PublicWeights{"falcon-h1-7b", 7.586},
                                       PublicWeights{"falcon-h1-34b", 33.64},
                                       PublicWeights{"gemma-4-e2b", 5.066},
                                       PublicWeights{"gemma-4-e4b", 7.955},
                                       PublicWeights{"qwen3-omni-30b-a3b", 31.72},
                                       PublicWeights{"kimi-k2.5", 1026.9},
                                       PublicWeights{"paligemma2-3b", 3.033},
                                       PublicWeights{"paligemma2-10b", 9.663},
                                       PublicWeights{"command-a-vision", 112.0},
                                       PublicWeights{"ovis2.5-9b", 9.175},
                                       PublicWeights{"minicpm-v-2.6", 8.099},
                                       PublicWeights{"minicpm-v-4.5", 8.696},
                                       PublicWeights{"llava-next-video-7b", 7.063},
                                       PublicWeights{"wan2.1-vace-1.3b", 2.15397},
                                       PublicWeights{"wan2.1-vace-14b", 17.33759},
                                       PublicWeights{"skyreels-v2-14b", 14.28849},
                                       PublicWeights{"hunyuanvideo-1.5", 8.32661},
                                       PublicWeights{"ltx-video-2b", 1.92339},
                                       PublicWeights{"ltx-video-13b", 13.04257},
                                       PublicWeights{"ltx-2-19b", 18.87617},
                                       PublicWeights{"mochi-1", 10.02768},
                                       PublicWeights{"cosmos-1.0-7b", 7.23619},
                                       PublicWeights{"cosmos-1.0-14b", 14.26715},
                                       PublicWeights{"kandinsky-5-lite-2b", 2.0077},
                                       PublicWeights{"kandinsky-5-pro-19b", 19.31133},
                                       PublicWeights{"pixart-sigma-xl", 0.61135},
                                       PublicWeights{"sana-1.6b", 1.60446},
                                       PublicWeights{"lumina-image-2.0", 2.60977},
                                       PublicWeights{"z-image", 6.15491},
                                       PublicWeights{"chroma1", 8.89998},
                                       PublicWeights{"cogview4-6b", 6.36912},
                                       PublicWeights{"wan2.2-animate-14b", 15.17705},
                                       PublicWeights{"falcon3-1b", 1.669},
                                       PublicWeights{"falcon3-3b", 3.228},
                                       PublicWeights{"falcon3-7b", 7.456},
                                       PublicWeights{"falcon3-10b", 10.306},
                                       PublicWeights{"seed-coder-8b", 8.25},
                                       PublicWeights{"minicpm5-1b", 1.081},
                                       PublicWeights{"tinyllama-1.1b", 1.1},
                                       PublicWeights{"codellama-7b", 6.739},
                                       PublicWeights{"codellama-13b", 13.016},
                                       PublicWeights{"codellama-34b", 33.744},
                                       PublicWeights{"codellama-70b", 68.977},
                                       PublicWeights{"qwen1.5-1.8b", 1.837},
                                       PublicWeights{"qwen1.5-4b", 3.95},
                                       PublicWeights{"qwen1.5-7b", 7.721},
                                       PublicWeights{"qwen1.5-14b", 14.167},
                                       PublicWeights{"qwen1.5-32b", 32.512},
                                       PublicWeights{"qwen1.5-72b", 72.288},
                                       PublicWeights{"qwen3-coder-480b-a35b", 480.155},
                                       PublicWeights{"qwen3.5-122b-a10b", 122},
                                       PublicWeights{"nemotron-3-ultra-550b-a55b", 550},
                                       PublicWeights{"nemotron-h-56b", 56},
                                       PublicWeights{"gemma-2b", 2.506},
                                       PublicWeights{"gemma-7b", 8.538},
                                       PublicWeights{"gemma-3-270m", 0.268},
                                       PublicWeights{"granite-3.3-2b", 2.534},
                                       PublicWeights{"granite-3.3-8b", 8.171},
                                       PublicWeights{"baichuan2-7b", 7.506},
                                       PublicWeights{"phi-2", 2.78},
                                       PublicWeights{"starcoder2-7b", 7.174},
                                       PublicWeights{"olmo-2-1b", 1.485},
                                       PublicWeights{"olmo-2-7b", 7.299},
                                       PublicWeights{"olmo-2-13b", 13.716},
                                       PublicWeights{"olmo-2-32b", 32.234},
                                       PublicWeights{"ling-mini-2.0", 16.26},
                                       PublicWeights{"nemotron-3-nano-4b", 3.974},
                                       PublicWeights{"ernie-4.5-0.3b", 0.361},
                                       PublicWeights{"smollm3-3b", 3.075},
                                       PublicWeights{"nemotron-3-nano-omni-30b-a3b", 33},
                                       PublicWeights{"qwen2.5-omni-3b", 4.7},
                                       PublicWeights{"llava-onevision-1.5-4b", 4.74},
                                       PublicWeights{"llava-onevision-1.5-8b", 8.53},
                                       PublicWeights{"ling-flash-2.0", 103},
                                       PublicWeights{"ling-1t", 1000},
                                       PublicWeights{"qwen2-57b-a14b", 57.41},
                                       PublicWeights{"command-r7b", 8.03},
                                       PublicWeights{"devstral-2-123b", 125},
                                       PublicWeights{"internvl3.5-gpt-oss-20b-a4b", 21.23},
                                       PublicWeights{"nemotron-mini-4b", 4.19},
                                       PublicWeights{"deepseek-vl2-tiny", 3.37},
                                       PublicWeights{"ovis2.5-2b", 2.57},
                                       PublicWeights{"keye-vl-1.5-8b", 8.7},
                                       PublicWeights{"qwen3-embedding-8b", 7.57},
                                       PublicWeights{"mistral-small-4-119b", 119},
                                       PublicWeights{"muse-glimmer-30b", 30},
                                       PublicWeights{"minimax-m3", 428}};

double parameters_in(const Model& model) {
    std::int64_t sum = 0;
    for (const auto& module : model.modules) sum += all_parameters(module.architecture);
    for (const auto& edge : model.edges) sum += projector_parameters(edge);
    return static_cast<double>(sum);
}

// Two thousandths of figures to five digits, which are sums of weights. LTX-2's stream of audio and the
// encoders of face and motion in front of Wan Animate are counted roughly.
double allowed(const PublicWeights& one) {
    const std::string_view name = one.name;
    const bool is_rough = name == "ltx-2-19b" || name == "wan2.2-animate-14b";
    const double digits = 1e3 * one.billions;
    return !is_rough && std::abs(digits - std::round(digits)) > 1e-6 ? 0.002 : 0.01;
}

}  // namespace

TEST_CASE("every public model has the published parameters") {
    std::vector<std::string> names;
    for (const PublicWeights& one : published_weights) {
        CAPTURE(one.name);
        names.emplace_back(one.name);
        CHECK(parameters_in(model(one.name)) / 1e9 == doctest::Approx(one.billions).epsilon(allowed(one)));
    }
    CHECK(names == public_model_names());
}

TEST_CASE("a public model is that of its configuration") {
    const Model qwen = model("qwen3-vl-2b");
    REQUIRE(qwen.modules.size() == 2);
    const Architecture& vit = qwen.modules[0].architecture;
    const Architecture& llm = qwen.modules[1].architecture;
    CHECK(vit.name == "qwen3-vl-2b-vit");
    CHECK(vit.layers == 24);
    CHECK(vit.hidden == 1024);
    CHECK(vit.patch_size == 16);
    CHECK(qwen.image.merge == 2);
    CHECK(llm.layers == 28);
    CHECK(llm.hidden == 2048);
    CHECK(llm.heads == 16);
    CHECK(llm.kv_heads == 8);
    CHECK(llm.ffn == 6144);
    CHECK(llm.vocab == 151'936);
    CHECK(llm.tied_embeddings);
    CHECK(qwen.confidence == "verified-file");
    CHECK(qwen.source.starts_with("Qwen/Qwen3-VL-2B-Instruct: "));
}

TEST_CASE("every other name is of a model that is known, and no name of another") {
    for (const auto& [called, name] : names_in_public()) {
        CAPTURE(called);
        CHECK(model(name).name == name);
        CHECK(model_called(called) == name);
        CHECK(model_called("Owner/" + called + "-Instruct") == name);
    }
}
