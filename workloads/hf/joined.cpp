#include "workloads/hf/joined.hpp"

#include "pipeweaver/base/text.hpp"
#include "workloads/hf/decoders.hpp"
#include "workloads/hf/images.hpp"
#include "workloads/hf/keys.hpp"
#include "workloads/hf/projectors.hpp"
#include "workloads/hf/towers.hpp"
#include "workloads/hf/videos.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::workloads::hf {

namespace {

constexpr Key text_part{"text_config", "llm_config", "language_config"};
constexpr Key vision_part{"vision_config", "vit_config"};
constexpr Key audio_part{"audio_config", "sound_config"};
constexpr Key part_type{"model_type"};

constexpr std::array joined_rows{
    JoinedRow{.type = "qwen2_vl",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "qwen2_vl_text",
              .vision_type = "qwen2_vl",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native,
              .videos = videos_by_frame},
    JoinedRow{.type = "qwen2_5_vl",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "qwen2_5_vl_text",
              .vision_type = "qwen2_5_vl",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native,
              .videos = videos_by_frame},
    JoinedRow{.type = "qwen3_vl",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "qwen3_vl_text",
              .vision_type = "qwen3_vl",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native,
              .videos = videos_by_clip},
    JoinedRow{.type = "qwen3_vl_moe",
              .start_from = "qwen3.6-35b-a3b",
              .text_type = "qwen3_vl_moe_text",
              .vision_type = "qwen3_vl",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native,
              .videos = videos_by_clip},
    JoinedRow{.type = "qwen3_5",
              .start_from = "qwen3.5-27b",
              .text_type = "qwen3_5_text",
              .vision_type = "qwen3_5",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native,
              .videos = videos_by_clip},
    JoinedRow{.type = "qwen3_5_moe",
              .start_from = "qwen3.6-35b-a3b",
              .text_type = "qwen3_5_moe_text",
              .vision_type = "qwen3_5",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native,
              .videos = videos_by_clip},
    JoinedRow{.type = "qwen2_5_omni",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "qwen2_5_omni_text",
              .vision_type = "qwen2_5_omni_vision_encoder",
              .audio_type = "qwen2_5_omni_audio_encoder",
              .inside = "thinker_config",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native},
    JoinedRow{.type = "qwen2_5_omni_thinker",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "qwen2_5_omni_text",
              .vision_type = "qwen2_5_omni_vision_encoder",
              .audio_type = "qwen2_5_omni_audio_encoder",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native},
    JoinedRow{.type = "qwen3_omni_moe",
              .start_from = "qwen3.6-35b-a3b",
              .text_type = "qwen3_omni_moe_text",
              .vision_type = "qwen3_omni_moe_vision_encoder",
              .audio_type = "qwen3_omni_moe_audio_encoder",
              .inside = "thinker_config",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native},
    JoinedRow{.type = "qwen2_audio",
              .start_from = "step-audio-2-mini",
              .text_type = "qwen2",
              .audio_type = "qwen2_audio_encoder"},
    JoinedRow{.type = "internvl_chat",
              .start_from = "internvl3-38b",
              .vision_type = "intern_vit_6b",
              .merge = merge_shuffle,
              .projector = project_shuffled,
              .images = images_square},
    JoinedRow{.type = "internvl",
              .start_from = "internvl3-38b",
              .text_type = "qwen2",
              .vision_type = "internvl",
              .merge = merge_shuffle,
              .projector = project_shuffled,
              .images = images_square},
    JoinedRow{.type = "llava",
              .start_from = "dip-vlm-s",
              .text_type = "llama",
              .vision_type = "clip_vision_model",
              .merge = merge_one,
              .projector = project_twice,
              .images = images_square},
    JoinedRow{.type = "llava_llama",
              .start_from = "dip-vlm-s",
              .text_type = "llama",
              .merge = merge_one,
              .projector = project_twice,
              .images = images_square},
    JoinedRow{.type = "llava_qwen",
              .start_from = "dip-vlm-s",
              .text_type = "qwen2",
              .merge = merge_one,
              .projector = project_twice,
              .images = images_square},
    JoinedRow{.type = "llava_mistral",
              .start_from = "dip-vlm-s",
              .text_type = "mistral",
              .merge = merge_one,
              .projector = project_twice,
              .images = images_square},
    JoinedRow{.type = "llava_next",
              .start_from = "dip-vlm-s",
              .text_type = "llama",
              .vision_type = "clip_vision_model",
              .merge = merge_one,
              .projector = project_twice,
              .images = images_square},
    JoinedRow{.type = "llava_next_video",
              .start_from = "dip-vlm-s",
              .text_type = "llama",
              .vision_type = "clip_vision_model",
              .merge = merge_one,
              .projector = project_twice,
              .images = images_square},
    JoinedRow{.type = "llava_onevision",
              .start_from = "dip-vlm-s",
              .text_type = "qwen2",
              .vision_type = "siglip_vision_model",
              .merge = merge_one,
              .projector = project_twice,
              .images = images_square},
    JoinedRow{.type = "llavaonevision1_5",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "LLaVAOneVision1_5_text",
              .vision_type = "rice_vit",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native},
    JoinedRow{.type = "mistral3",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "mistral",
              .vision_type = "pixtral",
              .merge = merge_spatial,
              .projector = project_mistral,
              .images = images_up_to_side},
    JoinedRow{.type = "gemma3",
              .start_from = "dip-vlm-s",
              .text_type = "gemma3_text",
              .vision_type = "siglip_vision_model",
              .merge = merge_pooled,
              .projector = project_once,
              .images = images_square},
    JoinedRow{.type = "gemma4",
              .start_from = "qwen3.6-35b-a3b",
              .text_type = "gemma4_text",
              .vision_type = "gemma4",
              .audio_type = "gemma4_audio",
              .audio_optional = true,
              .merge = merge_pooling,
              .projector = project_once,
              .images = images_few},
    JoinedRow{.type = "mllama",
              .start_from = "llama-3.2-90b-vision",
              .text_type = "mllama_text_model",
              .vision_type = "mllama_vision_model",
              .merge = merge_tiles,
              .projector = project_mllama,
              .images = images_tiled},
    JoinedRow{.type = "llama4",
              .start_from = "llama4-scout-109b",
              .text_type = "llama4_text",
              .vision_type = "llama4_vision_model",
              .merge = merge_shuffle,
              .projector = project_llama4,
              .images = images_square},
    JoinedRow{.type = "glm4v",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "glm4v_text",
              .vision_type = "glm4v",
              .merge = merge_spatial,
              .projector = project_glm,
              .images = images_frames},
    JoinedRow{.type = "glm4v_moe",
              .start_from = "glm-4.5-air",
              .text_type = "glm4v_moe_text",
              .vision_type = "glm4v_moe",
              .merge = merge_spatial,
              .projector = project_glm,
              .images = images_frames},
    JoinedRow{.type = "chatglm",
              .start_from = "step3-vl-10b",
              .text_type = "chatglm",
              .vision_type = "eva_clip",
              .merge = merge_convolved,
              .projector = project_chatglm,
              .images = images_square},
    JoinedRow{.type = "kimi_vl",
              .start_from = "deepseek-vl2",
              .text_type = "deepseek_v3",
              .vision_type = "moonvit",
              .merge = merge_kernel,
              .projector = project_merged,
              .images = images_limited},
    JoinedRow{.type = "kimi_k25",
              .start_from = "kimi-k2",
              .text_type = "kimi_k2",
              .vision_type = "moonvit3d",
              .merge = merge_kernel,
              .projector = project_merged,
              .images = images_limited},
    JoinedRow{.type = "paligemma",
              .start_from = "dip-vlm-s",
              .text_type = "gemma2",
              .vision_type = "siglip_vision_model",
              .merge = merge_one,
              .projector = project_once,
              .images = images_square},
    JoinedRow{.type = "cohere2_vision",
              .start_from = "internvl3-38b",
              .text_type = "cohere2",
              .vision_type = "siglip_vision_model",
              .merge = merge_downsampled,
              .projector = project_aligned,
              .images = images_square},
    JoinedRow{.type = "ovis2_5",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "qwen3",
              .vision_type = "siglip2_navit",
              .merge = merge_spatial,
              .projector = project_visual_words,
              .images = images_native},
    JoinedRow{.type = "molmo2",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "molmo2_text",
              .vision_type = "molmo2",
              .merge = merge_pairs,
              .projector = project_pooled,
              .images = images_crops,
              .change = kept_layers},
    JoinedRow{.type = "minicpmv",
              .start_from = "internvl3-38b",
              .vision_type = "siglip_vision_model",
              .merge = merge_queries,
              .projector = project_resampled,
              .images = images_slices,
              .text_type_by = minicpm_text},
    JoinedRow{.type = "Keye",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "qwen3",
              .vision_type = "keye",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native},
    JoinedRow{.type = "KeyeVL1_5",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "qwen3",
              .vision_type = "keye",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native},
    JoinedRow{.type = "deepseek_vl_v2",
              .start_from = "deepseek-vl2",
              .text_type = "deepseek_v2",
              .vision_type = "vision",
              .merge = merge_shuffle,
              .projector = project_shuffled,
              .images = images_square},
    JoinedRow{.type = "minimax_m3_vl",
              .start_from = "qwen3.6-35b-a3b",
              .text_type = "minimax_m3_vl_text",
              .vision_type = "minimax_m3_vl",
              .merge = merge_spatial,
              .projector = project_merged,
              .images = images_native},
    JoinedRow{.type = "muse_glimmer",
              .start_from = "qwen2.5-vl-7b",
              .text_type = "muse_glimmer_text",
              .vision_type = "muse_glimmer",
              .merge = merge_spatial,
              .projector = project_expanded,
              .images = images_native},
    JoinedRow{.type = "NemotronH_Nano_VL_V2",
              .start_from = "nemotron-nano-9b-v2",
              .text_type = "nemotron_h",
              .vision_type = "radio",
              .merge = merge_shuffle,
              .projector = project_expanded,
              .images = images_square},
    JoinedRow{.type = "NemotronH_Nano_Omni_Reasoning_V3",
              .start_from = "nemotron-3-nano-30b-a3b",
              .text_type = "nemotron_h",
              .vision_type = "radio",
              .audio_type = "parakeet",
              .audio_optional = true,
              .merge = merge_shuffle,
              .projector = project_expanded,
              .images = images_square},
    JoinedRow{.type = "ernie4_5_vl_moe",
              .start_from = "qwen3.6-35b-a3b",
              .text_type = "ernie4_5_vl_moe_text",
              .vision_type = "ernie4_5_vl_moe_vision",
              .merge = merge_spatial,
              .projector = project_frames,
              .images = images_native},
    JoinedRow{.type = "step3_vl",
              .start_from = "step3-321b",
              .text_type = "step3_text",
              .vision_type = "step3_vision_encoder",
              .merge = merge_strides,
              .projector = project_strides,
              .images = images_square},
    JoinedRow{.type = "step_robotics",
              .start_from = "step3-vl-10b",
              .text_type = "qwen3",
              .vision_type = "perception_encoder",
              .merge = merge_strides,
              .projector = project_doubled,
              .images = images_square},
    JoinedRow{.type = "ernie4_5_moe_vl",
              .start_from = "qwen3.6-35b-a3b",
              .text_type = "ernie4_5_moe_vl_text",
              .vision_type = "DFNRope_vision_transformer",
              .merge = merge_spatial,
              .projector = project_frames,
              .images = images_native},
    JoinedRow{.type = "idefics3",
              .start_from = "dip-vlm-s",
              .text_type = "llama",
              .vision_type = "idefics3",
              .merge = merge_scale,
              .projector = project_joined,
              .images = images_square},
    JoinedRow{.type = "smolvlm",
              .start_from = "dip-vlm-s",
              .text_type = "llama",
              .vision_type = "smolvlm",
              .merge = merge_scale,
              .projector = project_joined,
              .images = images_square},
};

Module module_of(std::string name, Architecture architecture, PassUnit unit, Modality modality) {
    return {std::move(name), std::move(architecture), unit, {modality}, true};
}

// What the part says it is, else what the row says.
std::string type_of(const Part& part, std::string_view otherwise) {
    const auto type = given(part, part_type);
    return type && !type->text().empty() ? type->text() : std::string(otherwise);
}

Part nested(const Part& in, const Key& key) {
    const auto member = given(in, key);
    return member ? Part{*member, in.reading, key.usual} : in;
}

Architecture read_language_model(const Part& in, const Part& root, const JoinedRow& row) {
    Part part = nested(in, text_part);
    const bool flat = !given(in, text_part);
    const std::string_view usual = row.text_type_by ? row.text_type_by(root) : row.text_type;
    const std::string type = flat ? std::string(usual) : type_of(part, usual);
    const DecoderRow* decoder = find_decoder(type);
    if (!decoder)
        refuse(part, type.empty() ? "the key 'llm_config' is missing" : unknown("model type", type, decoder_types()));
    if (!flat) {
        part.type = decoder->type;
        part.defaults = decoder->defaults;
    }
    return language_model(part, root, *decoder);
}

// LLaVA's own files name their tower instead of describing it.
const VisionRow* named_tower(const Part& root) {
    const auto name = given(root, key::tower_name);
    if (!name) refuse(root, "the key 'vision_config' is missing");
    const VisionRow* row = find_vision(name->text());
    if (!row) refuse(*name, *root.reading, unknown("vision tower", name->text(), vision_types()));
    return row;
}

void read_vision(const Part& in, const JoinedRow& row, const JsonDocument& empty, Towers& towers) {
    const VisionRow* vision = nullptr;
    if (given(in, vision_part)) {
        towers.vision = nested(in, vision_part);
        const std::string type = type_of(towers.vision, row.vision_type);
        vision = find_vision(type);
        if (!vision && (vision = find_vision(row.vision_type)) != nullptr)
            assume(*in.reading, fmt::format("its vision tower of type '{}' is read as '{}'", type, row.vision_type));
        if (!vision) refuse(towers.vision, unknown("model type", type, vision_types()));
    } else {
        vision = named_tower(towers.root);
        towers.vision.json = empty.root();
        towers.vision.name = "the file";
    }
    towers.vision.type = vision->type;
    towers.vision.defaults = vision->defaults;
    if (const auto width = given(towers.vision, key::hidden); width && width->is_object())
        refuse(*width, *in.reading, "has several encoders, one behind the other (DeepSeek-OCR), which are not read");
    towers.vit = vision_encoder(towers.vision, *vision);
    if (row.change) row.change(towers);
}

// The encoder's module, its edge to the language model, and how images become tokens.
void join_vision(Towers& towers, const JoinedRow& row, Model& model) {
    towers.merge = row.merge(towers);
    ModelEdge edge = row.projector(towers);
    edge.token_reduction = towers.merge * towers.merge;
    model.image.patch = towers.vit.patch_size;
    model.image.merge = towers.merge;
    require_patches(towers.processors, {towers.vit.patch_size, towers.merge, towers.vit.temporal_patch});
    row.images(towers, model);
    if (towers.llm.cross_attention_layers > 0) {
        const std::int64_t side = towers.vit.image_size / towers.vit.patch_size;
        towers.llm.text_tokens = 4 * (side * side + 1);
    }
    model.modules.push_back(module_of("vit", towers.vit, PassUnit::items, Modality::image));
    model.edges.push_back(edge);
    if (row.videos) {
        row.videos(towers, model);
        model.modules.back().modalities.push_back(Modality::video);
        return;
    }
    assume(*towers.root.reading, towers.processors.videos.empty()
                                     ? "videos are not read"
                                     : "videos are not read, nor what their processor's file says of frames");
}

void join_audio(const Part& in, const JoinedRow& row, const Architecture& llm, Model& model) {
    if (!given(in, audio_part)) {
        if (row.audio_optional) return;
        refuse(in, "the key 'audio_config' is missing");
    }
    Part part = nested(in, audio_part);
    const std::string type = type_of(part, row.audio_type);
    const AudioRow* audio = find_audio(type);
    if (!audio) {
        audio = find_audio(row.audio_type);
        assume(*in.reading, fmt::format("its audio tower of type '{}' is read as '{}'", type, row.audio_type));
    }
    part.type = audio->type;
    part.defaults = audio->defaults;
    auto encoder = audio_encoder(part, *audio);
    model.audio.frames_per_second = audio->frames_per_second;
    model.audio.tokens_per_second = audio->frames_per_second / static_cast<double>(audio->token_reduction);
    ModelEdge edge;
    edge.token_reduction = audio->token_reduction;
    edge.projector_in = encoder.hidden;
    edge.projector_out = llm.hidden;
    edge.from = model.modules.size();
    model.edges.push_back(edge);
    model.modules.push_back(module_of("audio", std::move(encoder), PassUnit::items, Modality::audio));
    assume(*in.reading, "frames_per_second and tokens_per_second under audio are those of the encoder's kind");
}

}  // namespace

const JoinedRow* find_joined(std::string_view type) {
    const auto found =
        std::find_if(joined_rows.begin(), joined_rows.end(), [&](const auto& row) { return row.type == type; });
    return found == joined_rows.end() ? nullptr : found;
}

std::vector<std::string> joined_types() {
    std::vector<std::string> types;
    types.reserve(joined_rows.size());
    for (const JoinedRow& row : joined_rows) types.emplace_back(row.type);
    return types;
}

Model joined_model(const Part& root, const JoinedRow& row, const Processors& processors) {
    root.reading->start_from = row.start_from;
    const Part in = row.inside.empty() ? root : Part{root.json.at(row.inside), root.reading, row.inside};
    const JsonDocument empty("the named vision tower", "{}");
    Towers towers{in, in, {}, read_language_model(in, root, row), 1, processors};
    root.reading->start_from = row.start_from;
    Model model;
    if (row.merge) {
        read_vision(in, row, empty, towers);
        join_vision(towers, row, model);
    }
    if (!row.audio_type.empty()) join_audio(in, row, towers.llm, model);
    for (ModelEdge& edge : model.edges) edge.to = model.modules.size();
    model.modules.push_back(module_of("llm", std::move(towers.llm), PassUnit::microbatch, Modality::text));
    return model;
}

}  // namespace pipeweaver::workloads::hf
