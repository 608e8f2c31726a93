#include "workloads/hf/diffusers.hpp"

#include "workloads/hf/diffusion_blocks.hpp"
#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipeweaver::workloads::hf {

namespace {

// Widths that no file says: sines of the time step, and the channels that Wan 2.2's second autoencoder is known by.
constexpr std::int64_t time_features = 256;
constexpr std::int64_t channels_of_16 = 48;

}  // namespace

void flux_blocks(const Part& part, Architecture& a) {
    a.mmdit = true;
    a.single_layers = needed(part, key::single_layers);
    a.layers = needed(part, key::dit_layers) + a.single_layers;
    a.ffn = 4 * a.hidden;
    a.condition_dim = needed(part, key::text_dim);
    a.attention.qk_norm = true;
}

namespace {

std::int64_t flux_embedders(const Part& part, const Architecture& a) {
    const std::int64_t h = a.hidden, times = flag(part, key::guidance, false) ? 2 : 1;
    return h * (2 * a.in_channels + a.condition_dim + needed(part, key::pooled_dim) + 3 * h) +
           times * h * (time_features + h);
}

void read_ratio(const Part& part, Architecture& a) {
    const auto ratio = given(part, key::ratio);
    if (!ratio) refuse(part, "the key 'mlp_ratio' is missing");
    a.ffn = std::llround(ratio->number(0.01, 1000) * static_cast<double>(a.hidden));
}

// Gated feed-forwards, and a modulation that all blocks of a kind share: of each stream of double blocks 6 vectors, of
// single blocks 3.
void flux2_blocks(const Part& part, Architecture& a) {
    flux_blocks(part, a);
    read_ratio(part, a);
    a.gated = true;
    a.modulation = (2 * 6 + 3) * a.hidden * a.hidden / a.layers;
    assume(*part.reading, "the modulation that blocks share is taken as shared out over them");
}

std::int64_t flux2_embedders(const Part& part, const Architecture& a) {
    const std::int64_t h = a.hidden, times = flag(part, key::guidance, true) ? 2 : 1;
    return h * (2 * a.in_channels + a.condition_dim + 2 * h) + times * h * (time_features + h);
}

void double_blocks(const Part& part, Architecture& a) {
    if (const auto dual = given(part, key::dual_attention); dual && dual->size() > 0)
        refuse(*dual, *part.reading, "is not empty: blocks with a second attention are not read");
    a.mmdit = true;
    a.layers = needed(part, key::dit_layers);
    a.ffn = 4 * a.hidden;
    a.condition_dim = needed(part, key::text_dim);
    a.attention.qk_norm = given(part, key::dit_qk_norm).has_value();
}

// Its last block has half a text stream; it is counted whole in their place.
std::int64_t sd3_embedders(const Part& /*part*/, const Architecture& /*network*/) { return 0; }

void qwen_image_blocks(const Part& part, Architecture& a) {
    double_blocks(part, a);
    a.attention.qk_norm = true;
}

std::int64_t qwen_image_embedders(const Part& /*part*/, const Architecture& a) {
    return a.hidden * (2 * a.in_channels + a.condition_dim + time_features + 3 * a.hidden);
}

void hunyuan_blocks(const Part& part, Architecture& a) {
    flux_blocks(part, a);
    read_ratio(part, a);
}

void hunyuan15_blocks(const Part& part, Architecture& a) {
    double_blocks(part, a);
    read_ratio(part, a);
}

std::int64_t hunyuan15_embedders(const Part& part, const Architecture& a) {
    const std::int64_t h = a.hidden;
    return 14 * h * h * needed(part, key::refiners) + h * (2 * a.condition_dim + 2 * time_features + 7 * h);
}

std::int64_t hunyuan_embedders(const Part& part, const Architecture& a) {
    const std::int64_t h = a.hidden, text = a.condition_dim, times = flag(part, key::guidance, false) ? 2 : 1;
    const std::int64_t refiner = 14 * h * h * needed(part, key::refiners) + 2 * text * h + h * (time_features + 2 * h);
    return refiner + times * h * (time_features + h) + h * (needed(part, key::pooled_dim) + 3 * h);
}

}  // namespace

// Cross attention to the text, in image-to-video models (added_kv_proj_dim) to the image as well, with keys and values
// of their own.
void wan_blocks(const Part& part, Architecture& a) {
    a.layers = needed(part, key::dit_layers);
    a.ffn = needed(part, key::dit_ffn);
    a.condition_dim = needed(part, key::text_dim);
    a.cross_attention_dim = a.hidden;
    a.attention.qk_norm = given(part, key::dit_qk_norm).has_value();
    if (!given(part, key::added_kv)) return;
    a.cross_attention_dim = 2 * a.hidden;
    assume(*part.reading, "keys and values of the image are taken as made of the text's positions");
}

std::int64_t wan_embedders(const Part& part, const Architecture& a) {
    const std::int64_t h = a.hidden, image = count(part, key::image_dim);
    return h * (a.condition_dim + h + time_features + h + 6 * h + 2 * a.in_channels) + image * (image + h);
}

namespace {

// Wan-Video/Wan2.1 wan/modules/model.py and Wan2.2's: of models of images the one has keys and values of the image, the
// other has not, and their files do not say which they are.
constexpr std::array wan_release{Default{"patch_size", 2}, Default{"text_len", 512}, Default{"text_dim", 4096}};
constexpr Key task_of_release{"model_type"};

void wan_release_blocks(const Part& part, Architecture& a) {
    if (const auto task = given(part, task_of_release); task && task->text() != "t2v" && task->text() != "ti2v")
        refuse(*task, *part.reading,
               fmt::format("is '{}', whose blocks differ between Wan 2.1 and 2.2; the config.json of the diffusers "
                           "library says which they are",
                           task->text()));
    wan_blocks(part, a);
    a.attention.qk_norm = flag(part, key::dit_qk_norm, true);
}

// One stream of text and latents, attention and then feed-forward, two modulations made of a narrow time embedding.
void cogvideox_blocks(const Part& part, Architecture& a) {
    a.mmdit = true;
    a.single_layers = a.layers = needed(part, key::dit_layers);
    a.ffn = 4 * a.hidden;
    a.condition_dim = needed(part, key::text_dim);
    a.modulation = 12 * a.hidden * needed(part, key::time_dim);
    a.attention.qk_norm = true;
    assume(*part.reading, "attention and feed-forward of a block are taken as side by side");
}

std::int64_t cogvideox_embedders(const Part& part, const Architecture& a) {
    const std::int64_t time = needed(part, key::time_dim);
    return a.hidden * (2 * a.in_channels + a.condition_dim + time + 2 * time) + time * time;
}

constexpr std::array diffusers_rows{
    DiffusersRow{.name = "FluxTransformer2DModel",
                 .start_from = "flux.1-dev",
                 .blocks = flux_blocks,
                 .embedders = flux_embedders,
                 .packed = true,
                 .text_tokens = 512},
    DiffusersRow{.name = "Flux2Transformer2DModel",
                 .start_from = "flux.1-dev",
                 .blocks = flux2_blocks,
                 .embedders = flux2_embedders,
                 .packed = true,
                 .text_tokens = 512},
    DiffusersRow{.name = "SD3Transformer2DModel",
                 .start_from = "sd3.5-large",
                 .blocks = double_blocks,
                 .embedders = sd3_embedders,
                 .text_tokens = 333},
    DiffusersRow{.name = "QwenImageTransformer2DModel",
                 .start_from = "qwen-image-20b",
                 .blocks = qwen_image_blocks,
                 .embedders = qwen_image_embedders,
                 .packed = true,
                 .text_tokens = 512},
    DiffusersRow{.name = "WanTransformer3DModel",
                 .start_from = "wan2.1-t2v-14b",
                 .blocks = wan_blocks,
                 .embedders = wan_embedders,
                 .video = true,
                 .text_tokens = 512},
    DiffusersRow{.name = "WanModel",
                 .start_from = "wan2.1-t2v-14b",
                 .blocks = wan_release_blocks,
                 .embedders = wan_embedders,
                 .video = true,
                 .released = wan_release},
    DiffusersRow{.name = "HunyuanVideoTransformer3DModel",
                 .start_from = "hunyuanvideo-13b-dit",
                 .blocks = hunyuan_blocks,
                 .embedders = hunyuan_embedders,
                 .video = true,
                 .fps = 24,
                 .text_tokens = 256},
    DiffusersRow{.name = "HunyuanVideo15Transformer3DModel",
                 .start_from = "hunyuanvideo-13b-dit",
                 .blocks = hunyuan15_blocks,
                 .embedders = hunyuan15_embedders,
                 .video = true,
                 .pixels = 16,
                 .fps = 24,
                 .text_tokens = 1000 + 256 + 729},  // of Qwen2.5-VL, of glyphs by ByT5, of an image by SigLIP
    DiffusersRow{.name = "CogVideoXTransformer3DModel",
                 .start_from = "hunyuanvideo-13b-dit",
                 .blocks = cogvideox_blocks,
                 .embedders = cogvideox_embedders,
                 .video = true},
    DiffusersRow{.name = "SkyReelsV2Transformer3DModel",
                 .start_from = "wan2.1-t2v-14b",
                 .blocks = wan_blocks,
                 .embedders = wan_embedders,
                 .video = true,
                 .fps = 24,
                 .text_tokens = 512},
    DiffusersRow{.name = "WanVACETransformer3DModel",
                 .start_from = "wan2.1-t2v-14b",
                 .blocks = wan_control_blocks,
                 .embedders = wan_control_embedders,
                 .video = true,
                 .text_tokens = 512},
    DiffusersRow{.name = "WanAnimateTransformer3DModel",
                 .start_from = "wan2.1-i2v-14b",
                 .blocks = wan_animate_blocks,
                 .embedders = wan_animate_embedders,
                 .video = true,
                 .text_tokens = 512},
    DiffusersRow{.name = "LTXVideoTransformer3DModel",
                 .start_from = "wan2.1-t2v-14b",
                 .blocks = ltx_blocks,
                 .embedders = ltx_embedders,
                 .video = true,
                 .pixels = 32,
                 .frames = 8,
                 .fps = 25,
                 .text_tokens = 128},
    DiffusersRow{.name = "LTX2VideoTransformer3DModel",
                 .start_from = "wan2.1-t2v-14b",
                 .blocks = ltx2_blocks,
                 .embedders = ltx_embedders,
                 .video = true,
                 .pixels = 32,
                 .frames = 8,
                 .fps = 24,
                 .text_tokens = 1024},
    DiffusersRow{.name = "MochiTransformer3DModel",
                 .start_from = "hunyuanvideo-13b-dit",
                 .blocks = mochi_blocks,
                 .embedders = mochi_embedders,
                 .video = true,
                 .frames = 6,
                 .fps = 30,
                 .text_tokens = 256},
    DiffusersRow{.name = "CosmosTransformer3DModel",
                 .start_from = "wan2.1-t2v-14b",
                 .blocks = cosmos_blocks,
                 .embedders = cosmos_embedders,
                 .video = true,
                 .frames = 8,
                 .text_tokens = 512},
    DiffusersRow{.name = "Kandinsky5Transformer3DModel",
                 .start_from = "wan2.1-t2v-14b",
                 .blocks = kandinsky_blocks,
                 .embedders = kandinsky_embedders,
                 .video = true,
                 .fps = 24,
                 .text_tokens = 256,
                 .by_width = true},
    DiffusersRow{.name = "PixArtTransformer2DModel",
                 .start_from = "sd3.5-large",
                 .blocks = pixart_blocks,
                 .embedders = ltx_embedders,
                 .text_tokens = 300},
    DiffusersRow{.name = "SanaTransformer2DModel",
                 .start_from = "sd3.5-large",
                 .blocks = sana_blocks,
                 .embedders = ltx_embedders,
                 .pixels = 32,
                 .text_tokens = 300},
    DiffusersRow{.name = "Lumina2Transformer2DModel",
                 .start_from = "sd3.5-large",
                 .blocks = lumina_blocks,
                 .embedders = refined_embedders,
                 .text_tokens = 256,
                 .by_width = true},
    DiffusersRow{.name = "ZImageTransformer2DModel",
                 .start_from = "sd3.5-large",
                 .blocks = z_image_blocks,
                 .embedders = refined_embedders,
                 .text_tokens = 512,
                 .by_width = true},
    DiffusersRow{.name = "ChromaTransformer2DModel",
                 .start_from = "flux.1-dev",
                 .blocks = chroma_blocks,
                 .embedders = chroma_embedders,
                 .packed = true,
                 .text_tokens = 512},
    DiffusersRow{.name = "CogView4Transformer2DModel",
                 .start_from = "sd3.5-large",
                 .blocks = cogvideox_blocks,
                 .embedders = cogvideox_embedders,
                 .text_tokens = 1024},
};

struct Patch {
    std::int64_t side = 1, frames = 1;
};

// "patch_size": 2, or [1, 2, 2]: frames, height, width.
Patch patch_of(const Part& part, const DiffusersRow& row) {
    if (const auto several = given(part, key::patches); several && several->size() > 0)
        return {(*several)[0].integer(1, most), 1};
    const auto member = given(part, key::patch);
    if (!member || !member->is_array()) {
        const std::int64_t side = needed(part, key::patch);
        return {row.packed ? 2 : side, row.video ? std::max<std::int64_t>(1, count(part, key::patch_t)) : 1};
    }
    if (member->size() != 3 || (*member)[1].integer(1, most) != (*member)[2].integer(1, most))
        refuse(*member, *part.reading, "is not [frames, side, side]");
    return {(*member)[1].integer(1, most), (*member)[0].integer(1, most)};
}

void read_positions(const Part& part, const DiffusersRow& row, const Patch& patch, std::int64_t channels,
                    Model& model) {
    const std::int64_t of_autoencoder = channels == channels_of_16 ? 16 : row.pixels;
    model.microbatch_tokens_of_file = 0;  // the file that is made of it does not say it
    assume(*part.reading, "latent patches of a microbatch: no source says how many (--microbatch-tokens)");
    const std::string of_frames = row.video ? fmt::format(" and {} frames, of the first alone", row.frames) : "";
    assume(*part.reading, fmt::format("the autoencoder makes one latent position of {} x {} pixels{}", of_autoencoder,
                                      of_autoencoder, of_frames));
    if (!row.video) {
        model.image.patch = of_autoencoder * patch.side;
        return;
    }
    model.video.spatial = of_autoencoder * patch.side;
    model.video.frames_in = row.frames * patch.frames;
    if (row.fps > 0) model.video.fps = row.fps;
    model.video.frames_out = 1;
    model.video.first_frame_alone = true;
    model.video.width = model.video.height = 0;
    assume(*part.reading, "clips keep their own width and height: video has neither that they would be scaled to");
}

std::int64_t head_dim_of(const Part& part, const DiffusersRow& row, std::int64_t heads) {
    if (row.released.empty() && !row.by_width) return needed(part, key::dit_head_dim);
    const std::int64_t width = needed(part, key::dit_width);
    if (width % heads != 0)
        refuse(part, fmt::format("{}: is {}, no multiple of the {} heads", key::dit_width.usual, width, heads));
    return width / heads;
}

}  // namespace

const DiffusersRow* find_diffusers(std::string_view name) {
    const auto* const found =
        std::find_if(diffusers_rows.begin(), diffusers_rows.end(), [&](const auto& row) { return row.name == name; });
    return found == diffusers_rows.end() ? nullptr : found;
}

std::vector<std::string> diffusers_names() {
    std::vector<std::string> names;
    names.reserve(diffusers_rows.size());
    for (const DiffusersRow& row : diffusers_rows) names.emplace_back(row.name);
    return names;
}

Model diffusion_model(const Part& file, const DiffusersRow& row) {
    file.reading->start_from = row.start_from;
    Part part = file;
    if (!row.released.empty()) {
        part.type = row.name;
        part.defaults = row.released;
    }
    Architecture a;
    a.kind = ModuleKind::diffusion_transformer;
    a.heads = a.kv_heads = row.by_width ? heads_of_width(part) : needed(part, key::dit_heads);
    a.head_dim = head_dim_of(part, row, a.heads);
    a.hidden = a.heads * a.head_dim;
    a.attention.causal = false;
    const Patch patch = patch_of(part, row);
    const std::int64_t channels = needed(part, key::in_channels);
    a.in_channels = row.packed ? channels : channels * patch.side * patch.side * patch.frames;
    row.blocks(part, a);
    a.embedders = row.embedders(part, a);
    a.text_tokens = row.text_tokens > 0 ? row.text_tokens : needed(part, key::text_length);
    if (row.text_tokens > 0)
        assume(*part.reading,
               fmt::format("{} positions of text to each item, as the pipeline pads them", row.text_tokens));
    Model model;
    read_positions(part, row, patch, channels, model);
    model.modules = {
        {"dit", std::move(a), PassUnit::microbatch, {row.video ? Modality::video : Modality::image}, true}};
    if (model.modules[0].architecture.embedders > 0)
        assume(*part.reading, "embedders and the last projection are counted as parameters, neither timed nor placed");
    return model;
}

}  // namespace pipeweaver::workloads::hf
