// Families of Hugging Face configurations: parameters, variants of spelling and layout, defaults that are said, and
// refusals with the way out.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/temporary.hpp"
#include "workloads/hf_config.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

struct Published {
    std::string_view name;
    double billions;
};
// The number of elements of the published weights (model.safetensors.index.json or the model's page), in billions.
// With an asterisk in tests/data/hf/README.md: the figure of the model card, or of the part that the file describes.
constexpr std::array published{Published{"qwen3-vl-8b", 8.767},
                               Published{"qwen3-vl-4b", 4.438},
                               Published{"qwen3-vl-30b-a3b", 31.07},
                               Published{"qwen3-4b", 4.022},
                               Published{"qwen3-30b-a3b", 30.53},
                               Published{"qwen3.6-35b-a3b", 35},
                               Published{"qwen3.5-27b", 27.4},
                               Published{"qwen2-audio-7b", 8.397},
                               Published{"qwen2.5-omni-7b", 8.93},
                               Published{"mixtral-8x7b", 46.70},
                               Published{"mistral-7b-v0.1", 7.242},
                               Published{"mistral-small-3.1-24b", 24.01},
                               Published{"pixtral-12b", 12.68},
                               Published{"deepseek-v3", 671.0},
                               Published{"deepseek-v2-lite", 15.71},
                               Published{"gemma-3-27b", 27.43},
                               Published{"gemma-3-4b", 4.300},
                               Published{"gemma-4-26b-a4b", 25.8},
                               Published{"llava-1.5-7b", 7.063},
                               Published{"llava-v1.5-13b", 13.35},
                               Published{"llava-onevision-7b", 8.030},
                               Published{"llama-3-8b", 8.030},
                               Published{"llama-3.2-11b-vision", 10.67},
                               Published{"llama-4-scout", 108.6},
                               Published{"glm-4.1v-9b", 10.29},
                               Published{"glm-4.5v", 107.7},
                               Published{"glm-4v-9b", 13.91},
                               Published{"kimi-vl-a3b", 16.41},
                               Published{"internvl2.5-8b", 8.075},
                               Published{"internvl2.5-38b", 38.39},
                               Published{"internvl3.5-8b-hf", 8.528},
                               Published{"internvl3.5-30b-a3b", 30.85},
                               Published{"idefics3-8b", 8.462},
                               Published{"smolvlm-instruct", 2.246},
                               Published{"smolvlm2-500m", 0.5075},
                               Published{"qwen2.5-32b", 32.76},
                               Published{"qwen2.5-vl-7b", 8.292},
                               Published{"qwen2.5-vl-72b", 73.41},
                               Published{"flux.1-dev", 11.90},
                               Published{"flux.2-dev", 32.2},
                               Published{"flux.2-klein-4b", 3.88},
                               Published{"sd3-medium", 2.028},
                               Published{"sd3.5-large", 8.057},
                               Published{"wan2.1-t2v-14b", 14.29},
                               Published{"wan2.1-i2v-14b", 16.40},
                               Published{"wan2.2-ti2v-5b", 5.000},
                               Published{"hunyuanvideo", 12.82},
                               Published{"cogvideox-5b", 5.570},
                               Published{"qwen-image", 20.43}};

std::filesystem::path folder() { return testing::source_folder() / "tests/data/hf"; }

Model kept(const std::string& name) { return read_hf_model(folder() / (name + ".json")); }

double parameters(const Model& model) {
    std::int64_t sum = 0;
    for (const auto& module : model.modules) sum += all_parameters(module.architecture);
    for (const auto& edge : model.edges) sum += projector_parameters(edge);
    return static_cast<double>(sum);
}

const Architecture& llm(const Model& model) { return model.modules.back().architecture; }

bool assumes(const Model& model, std::string_view part) {
    return std::any_of(model.assumed.begin(), model.assumed.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

Model parsed(const std::string& text) { return parse_hf_model(JsonDocument("c.json", text), "mine"); }

std::string refusal(const std::string& text) {
    try {
        static_cast<void>(parsed(text));
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "accepted";
}

// A small configuration with other members, as JSON texts; an empty one is left out.
std::string small(const std::string& type, const std::map<std::string, std::string>& others = {}) {
    std::map<std::string, std::string> members{{"hidden_size", "256"},       {"intermediate_size", "512"},
                                               {"num_hidden_layers", "6"},   {"num_attention_heads", "8"},
                                               {"num_key_value_heads", "2"}, {"vocab_size", "1000"}};
    for (const auto& [key, value] : others) members[key] = value;
    std::string text = R"({"model_type":")" + type + '"';
    for (const auto& [key, value] : members)
        if (!value.empty()) text += fmt::format(R"(,"{}":{})", key, value);
    return text + "}";
}

std::string with_experts(const std::string& type, std::map<std::string, std::string> others = {}) {
    others.insert({{"moe_intermediate_size", "64"}, {"num_experts", "8"}, {"num_experts_per_tok", "2"}});
    return small(type, others);
}

const MixtureOfExperts& experts(const Model& model) {
    REQUIRE(llm(model).moe);
    return *llm(model).moe;
}

}  // namespace

TEST_CASE("kept configurations have the published parameters") {
    // Off by more and said so.
    const std::set<std::string> apart{"gemma-4-e4b", "gemma-4-31b"};
    std::size_t seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
        if (entry.path().extension() != ".json" || apart.contains(entry.path().stem().string())) continue;
        const auto name = entry.path().stem().string();
        CAPTURE(name);
        const auto* const known =
            std::find_if(published.begin(), published.end(), [&](const Published& one) { return one.name == name; });
        REQUIRE(known != published.end());
        const auto model = kept(name);
        CHECK(parameters(model) / 1e9 == doctest::Approx(known->billions).epsilon(0.01));
        CHECK(parse_model(JsonDocument("again", to_json(model))) == model);
        ++seen;
    }
    CHECK(seen == published.size());
}

TEST_CASE("what the model form cannot say of Gemma 4 is said") {
    const auto dense = kept("gemma-4-31b");
    CHECK(assumes(dense, "the 10 full layers have heads of 512, and are taken with heads of 256 as the others: 0.55"));
    CHECK(parameters(dense) / 1e9 + 0.55 == doctest::Approx(31.25).epsilon(0.002));
    // A table of 256 columns for each of 42 layers, and what brings them to its width and back.
    const auto e4b = kept("gemma-4-e4b");
    const auto& text = llm(e4b);
    CHECK((text.layer_embedding == 256 && text.layers == 42 && text.ffn == 10240));
    const std::int64_t layer = 2560 * (256 * (2 * 8 + 2 * 2) + 3 * 10240 + 2 * 256);
    CHECK(layer_parameters(text, 0) == layer);
    CHECK(embedding_parameters(text) == 262144 * 2560 + 42LL * 256 * (262144 + 2560));
    CHECK(matrix_parameters(text) == embedding_parameters(text) + 42 * layer);
    CHECK(assumes(e4b, "the last 18 layers read keys and values of others"));
    CHECK(assumes(e4b, "0.09 billion parameters are not counted"));
    CHECK(e4b.modules.size() == 2);  // the file has no audio encoder
}

TEST_CASE("small Gemma 4: feed-forwards of two widths as one, and a conformer where the file has one") {
    const auto model = workloads::model("gemma-4-e2b");
    CHECK(assumes(model, "feed-forwards are 6144 and in the last 20 layers 12288 wide"));
    CHECK(llm(model).ffn == 9664);  // (15 x 6144 + 20 x 12288) / 35 = 9654.9, to the nearest 64
    REQUIRE(model.modules.size() == 3);
    const auto& audio = model.modules[1].architecture;
    CHECK((audio.kind == ModuleKind::audio_encoder && audio.layers == 12));
    // Two feed-forwards of 8 h^2, attention 4, its positions 1, a convolution's projections 3.
    CHECK(layer_parameters(audio, 0) == 24 * 1024 * 1024);
    CHECK(model.audio.tokens_per_second == 25);
}

TEST_CASE("hybrids: letters, layers' names, experts in a latent space, blocks side by side") {
    const std::map<std::string, std::string> nemotron{{"num_hidden_layers", "4"},
                                                      {"head_dim", "32"},
                                                      {"hybrid_override_pattern", "\"ME*-\""},
                                                      {"mamba_num_heads", "8"},
                                                      {"mamba_head_dim", "16"},
                                                      {"n_groups", "2"},
                                                      {"ssm_state_size", "16"},
                                                      {"conv_kernel", "4"},
                                                      {"n_routed_experts", "8"},
                                                      {"num_experts_per_tok", "2"},
                                                      {"moe_intermediate_size", "32"},
                                                      {"moe_latent_size", "64"},
                                                      {"n_shared_experts", "1"},
                                                      {"moe_shared_expert_intermediate_size", "96"}};
    const auto latent = llm(parsed(small("nemotron_h", nemotron)));
    CHECK((latent.layer_pattern == "ME*-" && latent.moe->latent == 64 && !latent.gated && latent.moe->moe_layers == 1));
    CHECK((latent.linear->kind == LinearKind::mamba2 && latent.linear->key_heads == 2 && latent.linear->chunk == 128));
    // Router, two projections, eight experts of two matrices, the shared one.
    CHECK(layer_parameters(latent, 1) == 256 * 8 + 2 * 256 * 64 + 8 * 2 * 64 * 32 + 2 * 256 * 96);
    CHECK(active_layer_parameters(latent, 1) == layer_parameters(latent, 1) - 6 * 2 * 64 * 32);
    auto named = nemotron;
    named.erase("hybrid_override_pattern");
    named["layers_block_type"] = R"(["mamba","moe","attention","mlp"])";
    CHECK(llm(parsed(small("nemotron_h", named))) == latent);
    named["layers_block_type"] = R"(["mamba","moe","attention","gate"])";
    CHECK(refusal(small("nemotron_h", named)).find("is 'gate', allowed are mamba, attention, mlp and moe") !=
          std::string::npos);
    auto short_one = nemotron;
    short_one["hybrid_override_pattern"] = "\"ME*\"";
    CHECK(refusal(small("nemotron_h", short_one)).find("has 3 letters for 4 layers") != std::string::npos);

    std::map<std::string, std::string> falcon{{"head_dim", "32"},     {"mamba_d_ssm", "128"},  {"mamba_n_heads", "8"},
                                              {"mamba_d_head", "16"}, {"mamba_n_groups", "2"}, {"mamba_d_state", "16"},
                                              {"mamba_d_conv", "4"}};
    const auto both = llm(parsed(small("falcon_h1", falcon)));
    CHECK((both.layer_pattern == "P" && block_kind(both, 3) == BlockKind::parallel));
    // Attention, Mamba-2 (into 128 + 2 x 32 + 128 + 8 columns and out of 128), a gated feed-forward.
    CHECK(layer_parameters(both, 0) == 256 * (2 * 256 + 2 * 64) + 256 * (328 + 128) + 3 * 256 * 512);
    falcon["mamba_d_ssm"] = "256";
    CHECK(refusal(small("falcon_h1", falcon)).find("mamba_d_ssm is 256, not the 128 of its heads") !=
          std::string::npos);
}

TEST_CASE("Ling 2 under both names of its class, and feed-forwards of two matrices") {
    const std::map<std::string, std::string> ling{
        {"head_dim", "32"}, {"num_shared_experts", "1"}, {"first_k_dense_replace", "1"}, {"use_qk_norm", "true"}};
    const auto named = llm(parsed(with_experts("bailing_moe", ling)));
    CHECK(llm(parsed(with_experts("bailing_moe_v2", ling))) == named);
    CHECK((named.moe->moe_layers == 5 && named.moe->shared_ffn == 64 && named.attention.qk_norm));
    // Attention, the router, eight experts and the shared one.
    CHECK(layer_parameters(named, 1) == 256 * (2 * 256 + 2 * 64) + 256 * 8 + 9 * 3 * 256 * 64);
    CHECK(!llm(parsed(with_experts("bailing_moe", {{"num_shared_experts", "1"}, {"first_k_dense_replace", "0"}})))
               .attention.qk_norm);
    for (const std::string type : {"phi", "nemotron", "starcoder2"}) {
        CAPTURE(type);
        CHECK(layer_parameters(llm(parsed(small(type))), 0) == 256 * (2 * 256 + 2 * 64) + 2 * 256 * 512);
    }
}

TEST_CASE("latent attention with an indexer, beside delta attention, and where a file has none") {
    std::map<std::string, std::string> latent{{"kv_lora_rank", "32"},          {"qk_nope_head_dim", "16"},
                                              {"qk_rope_head_dim", "8"},       {"v_head_dim", "16"},
                                              {"n_routed_experts", "8"},       {"num_experts_per_tok", "2"},
                                              {"moe_intermediate_size", "64"}, {"n_shared_experts", "1"},
                                              {"first_k_dense_replace", "1"},  {"index_topk", "2048"}};
    for (const char* type : {"deepseek_v32", "glm_moe_dsa"})
        CHECK(assumes(parsed(small(type, latent)), "as it is up to index_topk (2048)"));
    auto odd = latent;  // heads that do not divide the width
    odd["num_attention_heads"] = "5";
    CHECK(llm(parsed(small("glm4_moe_lite", odd))).heads == 5);
    auto kimi = latent;
    for (const char* key : {"n_routed_experts", "num_experts_per_tok", "n_shared_experts"}) kimi.erase(key);
    kimi.insert({{"num_experts", "8"},
                 {"num_experts_per_token", "2"},
                 {"num_shared_experts", "1"},
                 {"linear_attn_config", R"({"full_attn_layers":[3,6],"head_dim":16,"num_heads":8,)"
                                        R"("short_conv_kernel_size":4})"}});
    const auto delta = parsed(small("kimi_linear", kimi));
    CHECK((llm(delta).layer_pattern == "LLF" && llm(delta).attention.kind == AttentionKind::latent));
    CHECK((experts(delta).top_k == 2 && experts(delta).first_layer == 1 && llm(delta).linear->value_dim == 16));
    CHECK(assumes(delta, "delta attention is taken as a gated delta net"));
    auto plain = latent;
    for (const char* key : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) plain.erase(key);
    const auto heads = parsed(small("deepseek_v2", plain));
    CHECK((llm(heads).attention.kind == AttentionKind::dense && llm(heads).head_dim == 32));
    CHECK(assumes(heads, "plain heads, no latent attention"));
    // The word of the file wins over sizes that lie beside it.
    auto off = latent;
    off["use_mla"] = "false";
    const auto said = parsed(small("deepseek_v2", off));
    CHECK((llm(said).attention.kind == AttentionKind::dense && llm(said).head_dim == 32));
    CHECK(assumes(said, "use_mla is false"));
    for (const char* type : {"deepseek_v3", "kimi_k2", "glm4_moe_lite"}) {
        CAPTURE(type);
        CHECK(refusal(small(type, plain)).find("kv_lora_rank") != std::string::npos);
    }
}

TEST_CASE("towers of further families: layers that are kept, words of vision, queries, names with prefixes") {
    const std::string text =
        R"("hidden_size":256,"intermediate_size":512,"num_hidden_layers":6,"num_attention_heads":8,)"
        R"("num_key_value_heads":2,"head_dim":32,"vocab_size":1000,"tie_word_embeddings":false)";
    const std::string tower = R"("hidden_size":64,"intermediate_size":128,"num_attention_heads":4)";
    const auto molmo = parsed(R"({"model_type":"molmo2","text_config":{"model_type":"molmo2_text",)" + text +
                              R"(},"vit_config":{)" + tower +
                              R"(,"num_hidden_layers":27,"image_default_input_size":[378,378],"image_patch_size":14},)"
                              R"("adapter_config":{"hidden_size":64,"intermediate_size":96,"vit_layers":[-3,-9]}})");
    CHECK(molmo.modules[0].architecture.layers == 25);
    CHECK((molmo.image.fixed_pixels == 392 && molmo.image.merge == 2));
    CHECK(refusal(R"({"model_type":"molmo2","text_config":{"model_type":"molmo2_text",)" + text +
                  R"(},"vit_config":{)" + tower +
                  R"(,"num_hidden_layers":27,"image_default_input_size":[378,378],"image_patch_size":14},)"
                  R"("adapter_config":{"hidden_size":64,"intermediate_size":96,"vit_layers":[]}})")
              .find("is empty") != std::string::npos);
    // Queries, keys and values of two layers, output, a gated feed-forward to the width of text.
    const double pooled = 3 * 128 * 64 + 64 * 64 + 2 * 64 * 96 + 96 * 256;
    CHECK(static_cast<double>(projector_parameters(molmo.edges[0])) == doctest::Approx(pooled).epsilon(0.01));
    const auto ovis = parsed(R"({"model_type":"ovis2_5","visual_vocab_size":4096,"llm_config":{"model_type":"qwen3",)" +
                             text + R"(},"vit_config":{"model_type":"siglip2_navit",)" + tower +
                             R"(,"num_hidden_layers":3,"patch_size":16,"hidden_stride":2}})");
    CHECK(projector_parameters(ovis.edges[0]) == 4096 * (4 * 64 + 256));
    const std::string minicpm = R"({"model_type":"minicpmv",)" + text + R"(,"query_num":64,"image_size":448,)" +
                                R"("vision_config":{"model_type":"siglip_vision_model",)" + tower +
                                R"(,"num_hidden_layers":3,"image_size":980,"patch_size":14},"version":)";
    const auto resampled = parsed(minicpm + "2.6}");
    CHECK((resampled.image.merge == 4 && resampled.image.fixed_pixels == 448 && llm(resampled).qkv_bias));
    CHECK(llm(parsed(minicpm + "\"4.5\"}")).attention.qk_norm);
    CHECK(refusal(minicpm + "4}").find("is not 2.6 nor 4.5") != std::string::npos);
    const auto kimi = model("kimi-k2.5");
    CHECK((kimi.modules[0].architecture.layers == 27 && kimi.modules[0].architecture.ffn == 4304));
    const auto radio = parsed(R"({"model_type":"NemotronH_Nano_Omni_Reasoning_V3","force_image_size":512,)"
                              R"("projector_hidden_size":2048,"llm_config":{"model_type":"qwen3",)" +
                              text + R"(},"vision_config":{"model_type":"","patch_size":16},)" +
                              R"("sound_config":{"model_type":"parakeet","hidden_size":64,"num_hidden_layers":2,)"
                              R"("num_attention_heads":2}})");
    CHECK((radio.modules[0].architecture.hidden == 1280 && radio.image.fixed_pixels == 512));
    CHECK((radio.modules[1].architecture.ffn == 640 && radio.audio.tokens_per_second == 12.5));
    CHECK(projector_parameters(radio.edges[0]) == 2048 * (4 * 1280 + 256));
}

TEST_CASE("latent attention before experts, a gate behind windows, and dense layers in front of shared experts") {
    const auto mistral = llm(model("mistral-small-4-119b"));
    CHECK((mistral.attention.kind == AttentionKind::latent && mistral.moe->moe_layers == 36));
    CHECK((mistral.moe->shared_ffn == 2048 && *mistral.attention.q_lora_rank == 1024));
    const auto muse = llm(model("muse-glimmer-30b"));
    CHECK((muse.attention.output_gate && muse.attention.kind == AttentionKind::windowed));
    REQUIRE(muse.attention.full_layers.size() == 13);
    CHECK((muse.attention.full_layers.front() == 3 && muse.attention.full_layers.back() == 51));
    CHECK(model("muse-glimmer-30b").modules[0].architecture.layers == 50);
    const auto minimax = llm(model("minimax-m3"));
    CHECK((minimax.ffn == 12288 && minimax.moe->first_layer == 3 && minimax.moe->moe_layers == 57));
    CHECK((minimax.moe->expert_ffn == 3072 && minimax.moe->shared_ffn == 3072 && minimax.attention.qk_norm));
    // What a file leaves out is as its class has it.
    const auto bare = parsed(R"({"model_type":"muse_glimmer","projector_hidden_size":4096,"text_config":)"
                             R"({"model_type":"muse_glimmer_text"},"vision_config":)"
                             R"({"model_type":"muse_glimmer_vision"}})");
    CHECK(all_parameters(llm(bare)) == all_parameters(muse));
}

TEST_CASE("video pipelines: positions of text, rates and what their autoencoders make of frames") {
    const auto hunyuan = model("hunyuanvideo-1.5");
    CHECK((hunyuan.modules[0].architecture.text_tokens == 1985 && hunyuan.video.fps == 24));
    const auto ltx = model("ltx-video-2b");
    CHECK((ltx.video.spatial == 32 && ltx.video.frames_in == 8 && ltx.modules[0].architecture.text_tokens == 128));
    CHECK(model("mochi-1").video.frames_in == 6);
    const auto vace = model("wan2.1-vace-14b").modules[0].architecture;
    CHECK(vace.layers == 40 + 8);
    const auto cosmos = model("cosmos-1.0-7b").modules[0].architecture;
    CHECK((cosmos.modulation == 3 * 256 * 4 * 4096 && !cosmos.mmdit));
    // Self attention, queries and output of the cross attention, keys and values of 1024, feed-forward, modulation.
    CHECK(layer_parameters(cosmos, 0) == 14LL * 4096 * 4096 + 2LL * 1024 * 4096 + cosmos.modulation);
    CHECK(active_layer_parameters(cosmos, 0) == 14LL * 4096 * 4096);
}

TEST_CASE("whatever a refusal says to start from is in the catalogue") {
    for (const char* type : {"qwen3_vlx", "llama5", "gemma9", "deepseek_v9", "mllamas", "kimi", "internvl9", "xyz"}) {
        const auto line = refusal(small(type));
        CAPTURE(line);
        const auto at = line.find("\"pipeweaver show ");
        REQUIRE(at != std::string::npos);
        const auto begin = at + 17;
        const auto name = line.substr(begin, line.find('"', begin) - begin);
        CHECK(model(name).name == name);
    }
}

TEST_CASE("experts: where they are, what is shared, and how files spell them") {
    const auto moe = experts(parsed(with_experts("qwen3_moe")));
    CHECK((moe.experts == 8 && moe.top_k == 2 && moe.expert_ffn == 64 && moe.moe_layers == 6 && moe.shared_ffn == 0));
    const auto each_second = experts(parsed(with_experts("qwen3_moe", {{"decoder_sparse_step", "2"}})));
    CHECK((each_second.first_layer == 1 && each_second.every == 2 && each_second.moe_layers == 3));
    const auto later = experts(parsed(with_experts("qwen3_moe", {{"mlp_only_layers", "[0,1]"}})));
    CHECK((later.first_layer == 2 && later.moe_layers == 4));
    CHECK(refusal(with_experts("qwen3_moe", {{"mlp_only_layers", "[2]"}})).find("unequal distances") !=
          std::string::npos);
    const std::map<std::string, std::string> deepseek{{"kv_lora_rank", "32"},          {"qk_nope_head_dim", "16"},
                                                      {"qk_rope_head_dim", "8"},       {"v_head_dim", "16"},
                                                      {"n_routed_experts", "8"},       {"num_experts_per_tok", "2"},
                                                      {"moe_intermediate_size", "64"}, {"n_shared_experts", "2"},
                                                      {"first_k_dense_replace", "1"}};
    const auto latent = parsed(small("deepseek_v3", deepseek));
    CHECK((experts(latent).shared_ffn == 128 && experts(latent).first_layer == 1 && llm(latent).ffn == 512));
    CHECK((llm(latent).attention.kind == AttentionKind::latent && !llm(latent).attention.q_lora_rank));
    auto dense = deepseek;
    dense["n_routed_experts"] = "null";
    CHECK(!llm(parsed(small("deepseek_v2", dense))).moe);
    const auto mixtral = parsed(small("mixtral", {{"num_local_experts", "4"}, {"num_experts_per_tok", "2"}}));
    CHECK((experts(mixtral).expert_ffn == 512 && experts(mixtral).experts == 4));
    const auto shared = parsed(with_experts("qwen2_moe", {{"shared_expert_intermediate_size", "96"}}));
    CHECK((experts(shared).shared_ffn == 96 && llm(shared).qkv_bias));
    CHECK(refusal(with_experts("qwen3")).find("num_experts: is 8, but models of type 'qwen3' have no experts") !=
          std::string::npos);
}

TEST_CASE("what is assumed is printable, whatever the file names") {
    std::string text = read_file(testing::source_folder() / "tests/data/hf/kimi-vl-a3b.json");
    const std::string type = "\"model_type\": \"moonvit\"";
    const std::size_t at = text.find(type);
    REQUIRE(at != std::string::npos);
    text.replace(at, type.size(), "\"model_type\": \"\xc2\x9b\"");
    CHECK(assumes(parse_hf_model(JsonDocument("c.json", text), "mine"), R"(type '\xc2\x9b' is read as 'moonvit')"));
}

TEST_CASE("sliding windows are causal blocks twice as long, beside experts full attention; both are said") {
    const auto mistral = parsed(small("mistral", {{"sliding_window", "128"}}));
    CHECK((llm(mistral).attention.kind == AttentionKind::windowed && llm(mistral).attention.window == 256));
    CHECK(llm(mistral).attention.full_layers.empty());
    CHECK(assumes(mistral, "sliding windows of 128 tokens are priced as causal blocks of 256"));
    CHECK(llm(parsed(small("mistral", {{"sliding_window", "null"}}))).attention.kind == AttentionKind::dense);
    const auto gemma = parsed(small("gemma3_text", {{"sliding_window", "64"}, {"head_dim", "32"}}));
    CHECK((llm(gemma).attention.full_layers == std::vector<std::int64_t>{5} && llm(gemma).tied_embeddings));
    const auto listed = parsed(small(
        "gemma3_text", {{"sliding_window", "64"},
                        {"layer_types", R"(["full_attention","sliding_attention","sliding_attention","full_attention",)"
                                        R"("sliding_attention","sliding_attention"])"}}));
    CHECK(llm(listed).attention.full_layers == std::vector<std::int64_t>{0, 3});
    const auto from =
        parsed(small("qwen2", {{"use_sliding_window", "true"}, {"sliding_window", "64"}, {"max_window_layers", "4"}}));
    CHECK(llm(from).attention.full_layers == std::vector<std::int64_t>{0, 1, 2, 3});
    const auto oss =
        parsed(small("gpt_oss", {{"num_local_experts", "4"}, {"num_experts_per_tok", "2"}, {"sliding_window", "128"}}));
    CHECK((llm(oss).attention.kind == AttentionKind::dense && experts(oss).expert_ffn == 512));
    CHECK(assumes(oss, "sliding windows of 128 tokens beside experts are taken as full attention"));
}

TEST_CASE("gated delta nets: the pattern of layers, listed or by an interval") {
    const std::map<std::string, std::string> linear{{"linear_num_key_heads", "4"},   {"linear_num_value_heads", "8"},
                                                    {"linear_key_head_dim", "16"},   {"linear_value_head_dim", "16"},
                                                    {"linear_conv_kernel_dim", "4"}, {"full_attention_interval", "3"}};
    const auto model = parsed(small("qwen3_5_text", linear));
    CHECK((llm(model).layer_pattern == "LLF" && llm(model).linear->value_heads == 8 && llm(model).head_dim == 256));
    CHECK(llm(model).attention.output_gate);
    auto listed = linear;
    listed["layer_types"] = R"(["linear_attention","full_attention","linear_attention","full_attention",)"
                            R"("linear_attention","full_attention"])";
    CHECK(llm(parsed(small("qwen3_5_text", listed))).layer_pattern == "LF");
    listed.erase("linear_key_head_dim");
    CHECK(refusal(small("qwen3_5_text", listed)) ==
          "c.json: the key 'linear_key_head_dim' is missing; start from \"pipeweaver show qwen3.5-27b\"");
}

TEST_CASE("a nested part takes the defaults of its class, and says each; the whole file takes none") {
    const auto llava = kept("llava-1.5-7b");
    CHECK((llm(llava).hidden == 4096 && llm(llava).ffn == 11008 && llm(llava).layers == 32));
    for (const char* said : {"text_config lacks these, which are taken from 'llama': ", "hidden_size 4096",
                             "intermediate_size 11008", "num_hidden_layers 32", "num_attention_heads 32"})
        CHECK(assumes(llava, said));
    CHECK(refusal(small("llama", {{"hidden_size", ""}})) ==
          "c.json: the key 'hidden_size' is missing; start from \"pipeweaver show llama3-8b\"");
    CHECK(refusal(small("qwen3_moe")).find("the key 'num_experts' is missing") != std::string::npos);
}

TEST_CASE("a misspelled key is named, wherever a known one is missing") {
    for (const auto& [wrong, right] : std::map<std::string, std::string>{{"hiddne_size", "hidden_size"},
                                                                         {"hiddenSize", "hidden_size"},
                                                                         {"num_hiden_layer", "num_hidden_layers"},
                                                                         {"num_key_value_head", "num_key_value_heads"},
                                                                         {"vocabsize", "vocab_size"}})
        CHECK(refusal(small("llama", {{right, ""}, {wrong, "2"}})) ==
              fmt::format("c.json: there is '{}' but no '{}': is it misspelled?", wrong, right));
    CHECK(refusal(with_experts("qwen3_moe", {{"num_experts_per_tok", ""}, {"num_experts_per_token", "2"}}))
              .find("there is 'num_experts_per_token' but no 'num_experts_per_tok'") != std::string::npos);
    CHECK(refusal(small("mistral", {{"sliding_windw", "128"}})).find("no 'sliding_window'") != std::string::npos);
    // Other keys of these files are no misspellings.
    CHECK(refusal(small("llama", {{"num_labels", "2"}, {"hidden_act", "\"silu\""}, {"rope_theta", "1"}})) ==
          "accepted");
}

TEST_CASE("towers: names in the file, inner layers that feed the language model, several encoders, pooling") {
    const auto named = kept("llava-v1.5-13b");
    CHECK((named.modules[0].architecture.layers == 24 && named.image.fixed_pixels == 336));
    const auto deep = kept("qwen3-vl-8b");
    CHECK((deep.edges[0].projector_hidden == 4 * 4608 && deep.edges[0].projector_out == 4096));
    CHECK(assumes(deep, "3 inner layers of the encoder feed the language model"));
    const auto omni = kept("qwen2.5-omni-7b");
    REQUIRE(omni.modules.size() == 3);
    CHECK((omni.modules[1].name == "audio" && omni.audio.tokens_per_second == 25 && omni.edges[1].from == 1));
    CHECK((omni.edges[0].to == 2 && omni.edges[1].to == 2));
    const auto pooled = kept("gemma-3-4b");
    CHECK((pooled.image.merge == 4 && pooled.edges[0].token_reduction == 16 && pooled.image.fixed_pixels == 896));
    const auto pixtral = kept("pixtral-12b");
    CHECK((pixtral.image.fixed_pixels == 0 && pixtral.image.max_tokens == 4096));
    CHECK(pixtral.modules[0].architecture.gated);
    CHECK(kept("idefics3-8b").image.merge == 2);
    CHECK(kept("smolvlm2-500m").image.merge == 4);
    const auto crossed = kept("llama-3.2-11b-vision");
    CHECK((llm(crossed).cross_attention_layers == 8 && llm(crossed).text_tokens == 6404));
}

TEST_CASE("the transformers of diffusers become networks of two streams, of one, or with cross attention") {
    const auto flux = kept("flux.1-dev").modules[0].architecture;
    CHECK((flux.mmdit && flux.layers == 57 && flux.single_layers == 38 && flux.hidden == 3072));
    const auto ours = model("flux.1-dev").modules[0].architecture;
    CHECK((flux.ffn == ours.ffn && flux.text_tokens == ours.text_tokens && flux.condition_dim == ours.condition_dim));
    const auto klein = kept("flux.2-klein-4b").modules[0].architecture;
    CHECK((klein.hidden == 3072 && klein.layers == 25 && klein.single_layers == 20 && klein.gated));
    CHECK(klein.modulation == 15 * 3072 * 3072 / 25);
    CHECK(layer_parameters(klein, 0) - klein.modulation == 2 * (4 + 3 * 3) * 3072 * 3072);
    CHECK(layer_parameters(klein, 24) - klein.modulation == (4 + 3 * 3) * 3072 * 3072);
    const auto wan = kept("wan2.1-t2v-14b");
    CHECK((wan.video.spatial == 16 && wan.video.frames_in == 4 && wan.video.first_frame_alone && wan.video.width == 0));
    CHECK(wan.modules[0].architecture.cross_attention_dim == 5120);
    CHECK(kept("wan2.2-ti2v-5b").video.spatial == 32);
    const auto cog = kept("cogvideox-5b").modules[0].architecture;
    CHECK((cog.single_layers == cog.layers && cog.text_tokens == 226 && cog.modulation == 12 * 3072 * 512));
    CHECK(layer_parameters(cog, 0) == 12 * 3072 * 3072 + 12 * 3072 * 512);
    CHECK(refusal(R"({"_class_name":"FluxTransformer2D"})").find("did you mean 'FluxTransformer2DModel'?") !=
          std::string::npos);
    CHECK(refusal(R"({"_class_name":"SD3Transformer2DModel","num_attention_heads":2,"attention_head_dim":64,)"
                  R"("patch_size":2,"in_channels":16,"num_layers":4,"joint_attention_dim":64,)"
                  R"("dual_attention_layers":[0,1]})") ==
          "c.json: dual_attention_layers: is not empty: blocks with a second attention are not read; start from "
          "\"pipeweaver show sd3.5-large\"");
    CHECK(refusal(R"({"_class_name":"WanTransformer3DModel"})") ==
          "c.json: the key 'num_attention_heads' is missing; start from \"pipeweaver show wan2.1-t2v-14b\"");
}

TEST_CASE("a release of Wan is the model that the diffusers library has of it") {
    const std::string sizes =
        R"("_class_name":"WanModel","dim":5120,"ffn_dim":13824,"freq_dim":256,"in_dim":16,"num_heads":40,)"
        R"("num_layers":40,"out_dim":16,"text_len":512)";
    const auto release = parsed(R"({"model_type":"t2v",)" + sizes + "}");
    CHECK(release.modules[0].architecture.cross_attention_dim == 5120);
    CHECK(parameters(release) == parameters(kept("wan2.1-t2v-14b")));
    CHECK(release.source.starts_with("Hugging Face configuration of type WanModel"));
    CHECK(release.video.spatial == kept("wan2.1-t2v-14b").video.spatial);
    CHECK(refusal(R"({"model_type":"i2v",)" + sizes + "}") ==
          "c.json: model_type: is 'i2v', whose blocks differ between Wan 2.1 and 2.2; the config.json of the diffusers "
          "library says which they are; start from \"pipeweaver show wan2.1-t2v-14b\"");
    CHECK(refusal(R"({"_class_name":"WanModel","dim":5121,"ffn_dim":8,"num_heads":40,"num_layers":1,"in_dim":16})") ==
          "c.json: dim: is 5121, no multiple of the 40 heads; start from \"pipeweaver show wan2.1-t2v-14b\"");
}

TEST_CASE("further configurations of the families, by what differs in their files") {
    // LLaVA-OneVision-1.5-8B: an encoder with depth, embed_dim and a merger; Qwen3 behind it.
    const auto rice = parsed(
        R"({"model_type":"llavaonevision1_5","text_config":{"model_type":"LLaVAOneVision1_5_text","head_dim":128,)"
        R"("hidden_size":4096,"intermediate_size":12288,"num_attention_heads":32,"num_hidden_layers":36,)"
        R"("num_key_value_heads":8,"vocab_size":151936},"vision_config":{"model_type":"rice_vit","depth":24,)"
        R"("embed_dim":1024,"hidden_size":1024,"intermediate_size":4096,"num_heads":16,"patch_size":14,)"
        R"("spatial_merge_size":2,"text_hidden_size":4096}})");
    CHECK(parameters(rice) / 1e9 == doctest::Approx(8.53).epsilon(0.01));
    // HunyuanVideo 1.5: double blocks alone, patches of one latent position of 16 x 16 pixels.
    const auto video =
        parsed(R"({"_class_name":"HunyuanVideo15Transformer3DModel","attention_head_dim":128,"in_channels":65,)"
               R"("mlp_ratio":4.0,"num_attention_heads":16,"num_layers":54,"num_refiner_layers":2,"patch_size":1,)"
               R"("patch_size_t":1,"qk_norm":"rms_norm","text_embed_dim":3584})");
    CHECK(parameters(video) / 1e9 == doctest::Approx(8.33).epsilon(0.01));
    CHECK(video.video.spatial == 16);
    // Maverick: experts in every second layer, dense ones between them.
    const auto maverick = parsed(small("llama4_text", {{"intermediate_size_mlp", "1024"},
                                                       {"interleave_moe_layer_step", "2"},
                                                       {"num_local_experts", "4"},
                                                       {"num_experts_per_tok", "1"}}));
    CHECK((experts(maverick).first_layer == 1 && experts(maverick).every == 2 && llm(maverick).ffn == 1024));
    CHECK((experts(maverick).expert_ffn == 512 && experts(maverick).shared_ffn == 512));
    // CogVideoX 1.5: patches of two latent frames.
    const auto cog =
        parsed(R"({"_class_name":"CogVideoXTransformer3DModel","attention_head_dim":64,"in_channels":16,)"
               R"("max_text_seq_length":224,"num_attention_heads":48,"num_layers":42,"patch_size":2,"patch_size_t":2,)"
               R"("text_embed_dim":4096,"time_embed_dim":512})");
    CHECK(cog.video.frames_in == 8);
}

TEST_CASE("Step-3 has factored attention, and its layers of experts are a text") {
    const auto step3 = [](const std::string& layers, const std::string& ffn = R"("intermediate_size":15360,)") {
        return R"({"model_type":"step3_vl","understand_projector_stride":2,"projector_bias":false,"text_config":{)"
               R"("model_type":"step3_text")" +
               layers + R"(},"vision_config":{"model_type":"step3_vision_encoder",)" + ffn +
               R"("hidden_size":1792,"num_hidden_layers":63}})";
    };
    std::string layers = R"(,"moe_layers_enum":"4)";
    for (int i = 5; i < 60; ++i) layers += "," + std::to_string(i);
    const auto model = parsed(step3(layers + "\""));
    CHECK(parameters(model) / 1e9 == doctest::Approx(321).epsilon(0.005));
    CHECK(llm(model).attention.kind == AttentionKind::factored);
    CHECK((llm(model).attention.share_q_dim == 2048 && llm(model).kv_heads == 1));
    CHECK((experts(model).first_layer == 4 && experts(model).moe_layers == 56 && experts(model).shared_ffn == 5120));
    CHECK(model.image.merge == 4);
    CHECK(assumes(model, "num_attention_groups 1"));
    CHECK(refusal(step3("")).starts_with("c.json: text_config: the key 'moe_layers_enum' is missing"));
    CHECK(refusal(step3(R"(,"moe_layers_enum":"4,x")")) ==
          "c.json: text_config.moe_layers_enum: has 'x', allowed are layers from 0 to 60, separated by commas");
    // The class's default is not that of the release.
    CHECK(
        refusal(step3(layers + "\"", "")).starts_with("c.json: vision_config: the key 'intermediate_size' is missing"));

    // Step3-VL-10B: an encoder whose width, layers and heads are called so, and two convolutions that double it.
    const auto small_step = parsed(
        R"({"model_type":"step_robotics","understand_projector_stride":2,"text_config":{"model_type":"qwen3",)"
        R"("hidden_size":4096,"intermediate_size":12288,"num_attention_heads":32,"num_hidden_layers":36,)"
        R"("num_key_value_heads":8,"head_dim":128,"vocab_size":151936,"tie_word_embeddings":false},"vision_config":{)"
        R"("model_type":"perception_encoder","image_size":728,"patch_size":14,"width":1536,"layers":47,"heads":16}})");
    constexpr double v = 1536;
    // Attention and feed-forward of each layer, patches of 14 x 14 and 52 x 52 positions; norms and biases beside them.
    const double weights = 47 * (4 * v * v + 2 * v * 8960) + 588 * v + 52 * 52 * v;
    CHECK(static_cast<double>(all_parameters(small_step.modules[0].architecture)) ==
          doctest::Approx(weights).epsilon(0.001));
    CHECK(static_cast<double>(projector_parameters(small_step.edges[0])) ==
          doctest::Approx(90 * v * v + 4 * v * 4096).epsilon(0.001));
}

TEST_CASE("ERNIE's experts of text and of images are taken as of their mean width") {
    const auto ernie = [](const std::string& rest) {
        return R"({"model_type":"ernie4_5_moe_vl","hidden_size":2560,"intermediate_size":12288,)"
               R"("num_hidden_layers":28,"num_attention_heads":20,"num_key_value_heads":4,"vocab_size":103424,)"
               R"("moe_num_experts":[64,64],"moe_intermediate_size":[1536,512],"moe_k":6,"moe_num_shared_experts":2,)"
               R"("tie_word_embeddings":true,)" +
               rest +
               R"("vision_config":{"model_type":)"
               R"("DFNRope_vision_transformer","depth":32,"embed_dim":1280,"hidden_size":1280,"mlp_ratio":4,)"
               R"("num_heads":16,"patch_size":14,"spatial_merge_size":2}})";
    };
    const std::string layers = R"("moe_layer_start_index":[1,1],"moe_layer_interval":1,"moe_layer_end_index":)";
    const auto model = parsed(ernie(layers + "[29,28],"));
    // Attention, 27 layers of experts that are 64 x 1536 + 64 x 512 + 2 x 1536 wide, a dense one, a tied embedding.
    constexpr double h = 2560, attention = h * (20 + 2 * 4 + 20) * 128;
    constexpr double by_hand =
        28 * attention + 27 * (3 * h * (64 * 2048 + 3072) + 128 * h) + 3 * h * 12288 + 103424 * h;
    CHECK(static_cast<double>(all_parameters(llm(model))) == doctest::Approx(by_hand).epsilon(1e-4));
    CHECK((experts(model).experts == 128 && experts(model).top_k == 6 && experts(model).expert_ffn == 1024));
    CHECK(assumes(model,
                  "64 experts of text, 1536 wide, and 64 of images, 512 wide, are taken as 128 of their mean "
                  "width, 1024, of which every position chooses 6"));
    constexpr double s = 4 * 1280;
    CHECK(static_cast<double>(projector_parameters(model.edges[0])) ==
          doctest::Approx(5 * s * s + s * h).epsilon(0.001));
    CHECK(refusal(ernie(layers + "[29,20],"))
              .starts_with("c.json: experts in every layer up to the last are read, not with moe_layer_interval 1 up "
                           "to layer 20"));
    // The library's own form, whose class has the sizes of this release.
    const auto converted =
        parsed(R"({"model_type":"ernie4_5_vl_moe","tie_word_embeddings":true,"text_config":{"model_type":)"
               R"("ernie4_5_vl_moe_text","moe_intermediate_size":[1536,512],"moe_k":6,"moe_num_experts":64,)"
               R"("moe_num_shared_experts":2},"vision_config":{"model_type":"ernie4_5_vl_moe_vision",)"
               R"("spatial_merge_size":2}})");
    CHECK(parameters(converted) == parameters(model));
    CHECK(assumes(converted, "the first layer alone has no experts"));
    CHECK(refusal(ernie(R"("moe_layer_start_index":[1,2],"moe_layer_end_index":[29,28],)"))
              .starts_with("c.json: moe_layer_start_index: is 1 of text and 2 of images; only equal ones are read"));
}

TEST_CASE("kinds that no layer of ours expresses are refused with why, and the nearest that is read") {
    CHECK(refusal(small("deepseek_v4")) ==
          "c.json: model_type: 'deepseek_v4' is not read: its attention reads compressed keys (compress_ratios), and "
          "hyper-connections (hc_mult) carry several streams; the nearest that is read is 'deepseek_v32'; start from "
          "\"pipeweaver show deepseek-v3\", or from what \"pipeweaver show\" prints of this file");
    for (const auto& [type, near] : std::map<std::string, std::string>{{"gemma3n", "gemma4"},
                                                                       {"gemma3n_text", "gemma4_text"},
                                                                       {"phi4mm", "phi3"},
                                                                       {"phi4_multimodal", "phi3"},
                                                                       {"bagel", "qwen2"}}) {
        CAPTURE(type);
        CHECK(
            contains(refusal(small(type)), "the nearest that is read is '" + near + "'; start from \"pipeweaver show"));
    }
    CHECK(
        refusal(R"({"_class_name":"HiDreamImageTransformer2DModel","num_layers":16})")
            .starts_with("c.json: _class_name: 'HiDreamImageTransformer2DModel' is not read: its blocks have experts"));
}

TEST_CASE("a configuration of a kind that is not read begins a model file, which is refused until it is finished") {
    const auto begun = [](const std::string& text) {
        return begun_model("hf:" + testing::written("mine.json", text).string());
    };
    const std::string text = begun(
        R"({"model_type":"gemma3n","altup_num_inputs":4,"text_config":{"model_type":"gemma3n_text","hidden_size":256,)"
        R"("num_hidden_layers":6,"num_attention_heads":8,"head_dim":32,"vocab_size":1000,"intermediate_size":[512],)"
        R"("laurel_rank":64},"vision_config":{"hidden_size":128,"architecture":"mobilenetv5","depth":null}})");
    CHECK(
        JsonDocument("m.json", text).canonical() ==
        R"({"format":"pipeweaver-model/1","modules":[{"architecture":{"hidden":128,"kind":"vit","name":"mine-vit"},)"
        R"("modalities":["image"],"name":"vit","unit":"items"},{"architecture":{"head_dim":32,"heads":8,"hidden":256,)"
        R"("kind":"llm","layers":6,"name":"mine-llm","vocab":1000},"modalities":["text"],"name":"llm","unit":)"
        R"("microbatch"}],"name":"mine","not_read":["vision_config.architecture","text_config.intermediate_size",)"
        R"("text_config.laurel_rank","altup_num_inputs"]})");
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_model(JsonDocument("m.json", text))),
                         doctest::Contains("unknown key 'not_read'"), Error);
    // Without it one that says enough is read.
    const std::string whole = begun(small("deepseek_v4"));
    CHECK(contains(whole, "\"not_read\": []"));
    CHECK_THROWS_AS(static_cast<void>(parse_model(JsonDocument("m.json", whole))), Error);
    std::string finished = whole;
    finished.erase(finished.find("\"not_read\": [],"), 15);
    CHECK(parse_model(JsonDocument("m.json", finished)).modules.front().architecture.kv_heads == 2);
    // A transformer of diffusers; what is read begins nothing, nor what is no configuration.
    CHECK(contains(begun(R"({"_class_name":"HiDreamImageTransformer2DModel","num_layers":16})"), "\"layers\": 16"));
    CHECK(begun(small("llama")).empty());
    CHECK(begun("{}").empty());
    CHECK(begun_model("qwen2.5-7b").empty());
}

TEST_CASE("the parameters stand in the source of the model") {
    CHECK(kept("qwen2.5-vl-7b").source ==
          "Hugging Face configuration of type qwen2_5_vl; 8.29 billion parameters: vit 0.63 billion, llm 7.62 billion, "
          "projectors 0.04 billion");
    CHECK(kept("mixtral-8x7b").source == "Hugging Face configuration of type mixtral; 46.70 billion parameters");
}
