#include "workloads/hf/towers.hpp"

#include "workloads/hf/keys.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::workloads::hf {

namespace {

constexpr std::array qwen2_vl_vit{
    Default{"depth", 32},      Default{"embed_dim", 1280},        Default{"num_heads", 16},
    Default{"patch_size", 14}, Default{"temporal_patch_size", 2}, Default{"spatial_merge_size", 2}};
constexpr std::array qwen2_5_vl_vit{Default{"depth", 32},
                                    Default{"intermediate_size", 3420},
                                    Default{"num_heads", 16},
                                    Default{"patch_size", 14},
                                    Default{"window_size", 112},
                                    Default{"temporal_patch_size", 2},
                                    Default{"spatial_merge_size", 2}};
constexpr std::array qwen3_vl_vit{Default{"depth", 27},
                                  Default{"hidden_size", 1152},
                                  Default{"intermediate_size", 4304},
                                  Default{"num_heads", 16},
                                  Default{"patch_size", 16},
                                  Default{"temporal_patch_size", 2},
                                  Default{"spatial_merge_size", 2}};
constexpr std::array glm4v_vit{Default{"depth", 24},
                               Default{"hidden_size", 1536},
                               Default{"out_hidden_size", 4096},
                               Default{"num_heads", 12},
                               Default{"patch_size", 14},
                               Default{"temporal_patch_size", 2},
                               Default{"spatial_merge_size", 2}};
constexpr std::array clip_vit{Default{"hidden_size", 768},      Default{"intermediate_size", 3072},
                              Default{"num_hidden_layers", 12}, Default{"num_attention_heads", 12},
                              Default{"image_size", 224},       Default{"patch_size", 32}};
constexpr std::array siglip_vit{Default{"hidden_size", 768},      Default{"intermediate_size", 3072},
                                Default{"num_hidden_layers", 12}, Default{"num_attention_heads", 12},
                                Default{"image_size", 224},       Default{"patch_size", 16}};
constexpr std::array idefics3_vit{Default{"hidden_size", 1152},     Default{"intermediate_size", 3072},
                                  Default{"num_hidden_layers", 12}, Default{"num_attention_heads", 16},
                                  Default{"image_size", 224},       Default{"patch_size", 32}};
constexpr std::array pixtral_vit{Default{"hidden_size", 1024},     Default{"intermediate_size", 4096},
                                 Default{"num_hidden_layers", 24}, Default{"num_attention_heads", 16},
                                 Default{"image_size", 1024},      Default{"patch_size", 16}};
constexpr std::array internvl_vit{Default{"hidden_size", 1024},     Default{"intermediate_size", 4096},
                                  Default{"num_hidden_layers", 24}, Default{"num_attention_heads", 16},
                                  Default{"image_size", 448},       Default{"patch_size", 14}};
constexpr std::array intern_vit_vit{Default{"hidden_size", 3200},     Default{"intermediate_size", 12800},
                                    Default{"num_hidden_layers", 48}, Default{"num_attention_heads", 25},
                                    Default{"image_size", 224},       Default{"patch_size", 14}};
constexpr std::array moonvit_vit{Default{"hidden_size", 1152}, Default{"intermediate_size", 4304},
                                 Default{"num_hidden_layers", 27}, Default{"num_attention_heads", 16},
                                 Default{"patch_size", 14}};
constexpr std::array mllama_vit{Default{"hidden_size", 1280},       Default{"intermediate_size", 5120},
                                Default{"num_hidden_layers", 32},   Default{"num_global_layers", 8},
                                Default{"num_attention_heads", 16}, Default{"image_size", 448},
                                Default{"patch_size", 14}};
constexpr std::array llama4_vit{Default{"hidden_size", 768},      Default{"intermediate_size", 5632},
                                Default{"num_hidden_layers", 34}, Default{"num_attention_heads", 16},
                                Default{"image_size", 448},       Default{"patch_size", 14}};
constexpr std::array gemma4_vit{Default{"hidden_size", 768}, Default{"intermediate_size", 3072},
                                Default{"num_hidden_layers", 16}, Default{"num_attention_heads", 12},
                                Default{"patch_size", 16}};
constexpr std::array clip_large_336_vit{Default{"hidden_size", 1024},     Default{"intermediate_size", 4096},
                                        Default{"num_hidden_layers", 24}, Default{"num_attention_heads", 16},
                                        Default{"image_size", 336},       Default{"patch_size", 14}};
constexpr std::array clip_large_vit{Default{"hidden_size", 1024},     Default{"intermediate_size", 4096},
                                    Default{"num_hidden_layers", 24}, Default{"num_attention_heads", 16},
                                    Default{"image_size", 224},       Default{"patch_size", 14}};
constexpr std::array so400m_vit{Default{"hidden_size", 1152},     Default{"intermediate_size", 4304},
                                Default{"num_hidden_layers", 27}, Default{"num_attention_heads", 16},
                                Default{"image_size", 384},       Default{"patch_size", 14}};

constexpr std::array step3_vit{Default{"hidden_size", 1792},       Default{"num_hidden_layers", 63},
                               Default{"num_attention_heads", 16}, Default{"image_size", 728},
                               Default{"patch_size", 14},          Default{"output_hidden_size", 4096}};
constexpr std::array perception_vit{Default{"intermediate_size", 8960}};  // its class has mlp_ratio 8960 / 1536
constexpr std::array dfn_vit{Default{"depth", 32}, Default{"embed_dim", 1280}, Default{"num_heads", 16},
                             Default{"patch_size", 14}, Default{"spatial_merge_size", 2}};
constexpr std::array ernie_vit{Default{"depth", 32}, Default{"hidden_size", 1280}, Default{"num_heads", 16},
                               Default{"intermediate_size", 5120}, Default{"patch_size", 14}};
constexpr std::array radio_vit{Default{"hidden_size", 1280},     Default{"intermediate_size", 5120},
                               Default{"num_hidden_layers", 32}, Default{"num_attention_heads", 16},
                               Default{"image_size", 512},       Default{"patch_size", 16}};
constexpr std::array minimax_m3_vit{Default{"hidden_size", 1280},     Default{"intermediate_size", 5120},
                                    Default{"num_hidden_layers", 32}, Default{"num_attention_heads", 16},
                                    Default{"patch_size", 14},        Default{"temporal_patch_size", 2},
                                    Default{"spatial_merge_size", 2}};
constexpr std::array muse_vit{Default{"hidden_size", 1536},     Default{"intermediate_size", 8960},
                              Default{"num_hidden_layers", 50}, Default{"num_attention_heads", 16},
                              Default{"patch_size", 14},        Default{"merge_size", 2}};
constexpr std::array deepseek_vit{Default{"num_attention_heads", 16}, Default{"image_size", 384},
                                  Default{"patch_size", 14}};
constexpr std::array gemma4_audio{Default{"hidden_size", 1024}, Default{"num_hidden_layers", 12},
                                  Default{"num_attention_heads", 8}};

// Types, and at the end towers that LLaVA's own files name instead of describing them.
constexpr std::array vision_rows{
    VisionRow{
        .type = "qwen2_vl", .defaults = qwen2_vl_vit, .embed = true, .ffn = Width::ratio, .native = true, .frames = 2},
    VisionRow{
        .type = "qwen2_5_vl", .defaults = qwen2_5_vl_vit, .gated = true, .windows = true, .native = true, .frames = 2},
    VisionRow{.type = "qwen2_5_omni_vision_encoder",
              .defaults = qwen2_5_vl_vit,
              .gated = true,
              .windows = true,
              .native = true,
              .frames = 2},
    VisionRow{.type = "qwen3_vl", .defaults = qwen3_vl_vit, .native = true, .frames = 2},
    VisionRow{.type = "qwen3_vl_moe", .defaults = qwen3_vl_vit, .native = true, .frames = 2},
    VisionRow{.type = "qwen3_omni_moe_vision_encoder", .defaults = qwen3_vl_vit, .native = true, .frames = 2},
    VisionRow{.type = "qwen3_5", .defaults = qwen3_vl_vit, .native = true, .frames = 2},
    VisionRow{.type = "qwen3_5_moe", .defaults = qwen3_vl_vit, .native = true, .frames = 2},
    VisionRow{.type = "glm4v", .defaults = glm4v_vit, .ffn = Width::output, .gated = true, .native = true, .frames = 2},
    VisionRow{
        .type = "glm4v_moe", .defaults = glm4v_vit, .ffn = Width::output, .gated = true, .native = true, .frames = 2},
    VisionRow{.type = "clip_vision_model", .defaults = clip_vit},
    VisionRow{.type = "siglip_vision_model", .defaults = siglip_vit},
    VisionRow{.type = "idefics3", .defaults = idefics3_vit},
    VisionRow{.type = "smolvlm", .defaults = idefics3_vit},
    VisionRow{.type = "pixtral", .defaults = pixtral_vit, .gated = true, .native = true},
    VisionRow{.type = "intern_vit_6b", .defaults = intern_vit_vit, .qk_norm = true},
    VisionRow{.type = "internvl", .defaults = internvl_vit},
    VisionRow{.type = "moonvit", .defaults = moonvit_vit, .native = true},
    VisionRow{.type = "moonvit3d", .defaults = moonvit_vit, .native = true},
    VisionRow{.type = "siglip2_navit", .native = true},
    VisionRow{.type = "keye", .defaults = so400m_vit, .native = true},
    VisionRow{.type = "molmo2"},
    VisionRow{.type = "step3_vision_encoder", .defaults = step3_vit},
    VisionRow{.type = "perception_encoder", .defaults = perception_vit, .ffn = Width::ratio_or_intermediate},
    VisionRow{
        .type = "DFNRope_vision_transformer", .defaults = dfn_vit, .embed = true, .ffn = Width::ratio, .native = true},
    VisionRow{.type = "ernie4_5_vl_moe_vision", .defaults = ernie_vit, .native = true},
    VisionRow{.type = "minimax_m3_vl", .defaults = minimax_m3_vit, .native = true},
    VisionRow{.type = "muse_glimmer", .defaults = muse_vit, .native = true},
    VisionRow{.type = "radio", .defaults = radio_vit},
    VisionRow{.type = "vision", .defaults = deepseek_vit, .ffn = Width::ratio},
    VisionRow{.type = "mllama_vision_model", .defaults = mllama_vit, .globals = true},
    VisionRow{.type = "llama4_vision_model", .defaults = llama4_vit},
    VisionRow{.type = "gemma4", .defaults = gemma4_vit, .gated = true, .qk_norm = true, .native = true},
    VisionRow{.type = "rice_vit", .embed = true, .native = true},
    VisionRow{.type = "eva_clip"},
    VisionRow{.type = "openai/clip-vit-large-patch14-336", .defaults = clip_large_336_vit},
    VisionRow{.type = "openai/clip-vit-large-patch14", .defaults = clip_large_vit},
    VisionRow{.type = "google/siglip-so400m-patch14-384", .defaults = so400m_vit},
};

constexpr std::array audio_rows{
    AudioRow{.type = "whisper"},
    AudioRow{.type = "qwen2_audio_encoder"},
    AudioRow{.type = "qwen2_5_omni_audio_encoder"},
    AudioRow{.type = "qwen3_omni_moe_audio_encoder", .frames_per_second = 12.5, .token_reduction = 1},
    AudioRow{.type = "gemma4_audio",
             .defaults = gemma4_audio,
             .frames_per_second = 25,
             .token_reduction = 1,
             .conformer = true},
    AudioRow{.type = "parakeet", .frames_per_second = 12.5, .token_reduction = 1, .conformer = true},
};

std::int64_t ffn_of(const Part& part, const VisionRow& row, std::int64_t hidden) {
    if (row.ffn == Width::output) return needed(part, key::out_hidden);
    if (row.ffn == Width::intermediate) return needed(part, key::ffn);
    const auto ratio = given(part, key::ratio);
    if (!ratio && row.ffn == Width::ratio_or_intermediate) return needed(part, key::ffn);
    if (ratio) return std::llround(ratio->number(0.01, 1000) * static_cast<double>(hidden));
    assume(*part.reading, "the vision encoder's feed-forward is 4 times as wide as its blocks: there is no mlp_ratio");
    return 4 * hidden;
}

void read_vision_windows(const Part& part, Architecture& a) {
    const std::int64_t window = needed(part, key::vit_window);
    const std::int64_t side = divided(part, {"window_size", window}, {"patch_size", a.patch_size});
    a.attention.kind = AttentionKind::windowed;
    a.attention.window = side * side;
    const auto full = given(part, key::full_blocks);
    if (!full) {
        constexpr std::array<std::int64_t, 4> usual{7, 15, 23, 31};  // of its class in transformers
        assume(*part.reading, fmt::format("the vision encoder attends to whole images in its blocks {}: there is no "
                                          "fullatt_block_indexes",
                                          fmt::join(usual, ", ")));
        for (const std::int64_t layer : usual)
            if (layer < a.layers) a.attention.full_layers.push_back(layer);
        return;
    }
    a.attention.full_layers.reserve(full->size());
    for (const Json& layer : full->elements()) a.attention.full_layers.push_back(layer.integer(0, a.layers - 1));
}

// Files name a tower's part of the configuration with or without this.
std::string_view without(std::string_view name, std::string_view ending) {
    return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

}  // namespace

const VisionRow* find_vision(std::string_view type) {
    for (const std::string_view name : {type, without(type, "_vision")}) {
        const auto found =
            std::find_if(vision_rows.begin(), vision_rows.end(), [&](const auto& row) { return row.type == name; });
        if (found != vision_rows.end()) return found;
    }
    return nullptr;
}

const AudioRow* find_audio(std::string_view type) {
    const auto* const found =
        std::find_if(audio_rows.begin(), audio_rows.end(), [&](const auto& row) { return row.type == type; });
    return found == audio_rows.end() ? nullptr : found;
}

std::vector<std::string> vision_types() {
    std::vector<std::string> types;
    types.reserve(vision_rows.size());
    for (const VisionRow& row : vision_rows) types.emplace_back(row.type);
    return types;
}

Architecture vision_encoder(const Part& part, const VisionRow& row) {
    Architecture a;
    a.kind = ModuleKind::vision_encoder;
    a.layers = needed(part, row.frames > 1 ? key::depth : key::vit_layers);
    if (row.globals) a.layers += needed(part, key::global_layers);
    a.hidden = needed(part, row.embed ? key::embed : key::hidden);
    a.heads = a.kv_heads = needed(part, row.frames > 1 ? key::vit_heads : key::heads);
    const auto head_dim = size(part, key::head_dim);
    a.head_dim = head_dim ? *head_dim
                          : divided(part, {row.embed ? "embed_dim" : "hidden_size", a.hidden},
                                    {row.frames > 1 ? "num_heads" : "num_attention_heads", a.heads});
    a.ffn = ffn_of(part, row, a.hidden);
    a.gated = row.gated;
    a.patch_size = square(part, key::patch);
    a.temporal_patch = size(part, key::temporal_patch).value_or(row.frames);
    if (!row.native) a.image_size = square(part, key::image);
    a.attention.causal = false;
    a.attention.qk_norm = flag(part, key::qk_norm, row.qk_norm);
    if (row.windows) read_vision_windows(part, a);
    return a;
}

namespace {

// Two feed-forwards of four widths, of a convolution two projections, and of positions one more.
Architecture conformer(const Part& part) {
    Architecture a;
    a.kind = ModuleKind::audio_encoder;
    a.layers = needed(part, key::layers);
    a.hidden = needed(part, key::hidden);
    a.ffn = 10 * a.hidden;
    a.heads = a.kv_heads = needed(part, key::heads);
    a.head_dim = divided(part, {"hidden_size", a.hidden}, {"num_attention_heads", a.heads});
    a.attention.causal = false;
    assume(*part.reading,
           "feed-forwards, convolution and positions of the audio encoder's blocks are taken as one "
           "feed-forward of as many parameters");
    return a;
}

}  // namespace

Architecture audio_encoder(const Part& part, const AudioRow& row) {
    if (row.conformer) return conformer(part);
    Architecture a;
    a.kind = ModuleKind::audio_encoder;
    a.layers = needed(part, key::audio_layers);
    a.hidden = needed(part, key::audio_hidden);
    a.ffn = needed(part, key::audio_ffn);
    a.heads = a.kv_heads = needed(part, key::audio_heads);
    a.head_dim = divided(part, {"d_model", a.hidden}, {"encoder_attention_heads", a.heads});
    a.attention.causal = false;
    return a;
}

}  // namespace pipeweaver::workloads::hf
