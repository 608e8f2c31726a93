#include "workloads/hf/diffusion_blocks.hpp"

#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipeweaver::workloads::hf {

namespace {

constexpr std::int64_t time_sines = 256;

void one_stream(const Part& part, Architecture& a) {
    a.mmdit = true;
    a.single_layers = a.layers = needed(part, key::dit_layers);
    a.attention.qk_norm = true;
    assume(*part.reading, "attention and feed-forward of a block are taken as side by side");
}

void cross_blocks(const Part& part, Architecture& a, std::int64_t source) {
    a.layers = needed(part, key::dit_layers);
    a.ffn = 4 * a.hidden;
    a.cross_attention_dim = source;
}

}  // namespace

std::int64_t heads_of_width(const Part& part) {
    if (const auto heads = size(part, key::dit_heads)) return *heads;
    const auto axes = given(part, key::axes);
    if (!axes) refuse(part, fmt::format("the key '{}' is missing", key::dit_heads.usual));
    std::int64_t of_head = 0;
    for (const Json& axis : axes->elements()) of_head += axis.integer(1, most);
    return divided(part, {"model_dim", needed(part, key::dit_width)}, {"the sum of axes_dims", of_head});
}

void wan_control_blocks(const Part& part, Architecture& a) {
    wan_blocks(part, a);
    const auto control = given(part, key::control_layers);
    if (!control) refuse(part, "the key 'vace_layers' is missing");
    a.layers += static_cast<std::int64_t>(control->size());
    assume(*part.reading,
           fmt::format("the {} blocks of VACE, which run beside others, are taken as the last ones", control->size()));
}

std::int64_t wan_control_embedders(const Part& part, const Architecture& a) {
    const auto control = given(part, key::control_layers);
    const std::int64_t blocks = control ? static_cast<std::int64_t>(control->size()) : 0;
    const std::int64_t channels = count(part, key::control_channels) * (a.in_channels / needed(part, key::in_channels));
    return wan_embedders(part, a) + a.hidden * ((blocks + 1) * a.hidden + channels);
}

void wan_animate_blocks(const Part& part, Architecture& a) {
    wan_blocks(part, a);
    assume(*part.reading, "the attentions to the face are counted among the embedders, its encoders not at all");
}

std::int64_t wan_animate_embedders(const Part& part, const Architecture& a) {
    const std::int64_t every = needed(part, key::face_every);
    return wan_embedders(part, a) + (a.layers + every - 1) / every * 4 * a.hidden * a.hidden;
}

void ltx_blocks(const Part& part, Architecture& a) {
    cross_blocks(part, a, needed(part, key::cross_dim));
    a.condition_dim = needed(part, key::caption_dim);
    a.attention.qk_norm = given(part, key::dit_qk_norm).has_value();
}

// The audio's own blocks and the attentions between the two, whose positions are few.
void ltx2_blocks(const Part& part, Architecture& a) {
    ltx_blocks(part, a);
    const std::int64_t audio = needed(part, key::audio_dit_heads) * needed(part, key::audio_dit_head_dim);
    a.modulation = 16 * audio * audio + 4 * audio * (a.hidden + audio);
    assume(*part.reading,
           "the stream of audio and its attentions are counted as parameters and timed as one position a clip: "
           "its positions are few beside the video's");
}

std::int64_t ltx_embedders(const Part& part, const Architecture& a) {
    const auto of_stream = [&](std::int64_t width, std::int64_t channels) {
        return width * (2 * channels + a.condition_dim + 8 * width + time_sines);
    };
    const std::int64_t of_video = of_stream(a.hidden, a.in_channels);
    if (!given(part, key::audio_dit_heads)) return of_video;
    const std::int64_t audio = needed(part, key::audio_dit_heads) * needed(part, key::audio_dit_head_dim);
    return of_video + of_stream(audio, needed(part, key::audio_dit_channels));
}

void pixart_blocks(const Part& part, Architecture& a) { ltx_blocks(part, a); }

void sana_blocks(const Part& part, Architecture& a) {
    ltx_blocks(part, a);
    const auto ratio = given(part, key::ratio);
    if (!ratio) refuse(part, "the key 'mlp_ratio' is missing");
    a.ffn = std::llround(ratio->number(0.01, 1000) * static_cast<double>(a.hidden));
    a.gated = true;
    assume(*part.reading,
           "linear attention is priced as attention to all positions, and the convolution inside the "
           "feed-forward not at all");
}

// Gated feed-forwards; a narrow stream of text.
void mochi_blocks(const Part& part, Architecture& a) {
    one_stream(part, a);
    const std::int64_t h = a.hidden, text = needed(part, key::pooled_dim);
    a.ffn = 4 * h * 2 / 3;
    a.gated = true;
    a.condition_dim = needed(part, key::text_dim);
    a.modulation = 4 * h * (h + text) + 4 * text * h + 3 * text * (4 * text * 2 / 3);
    assume(*part.reading,
           "the narrower weights of the text's stream are counted beside the modulation; its positions "
           "pass those of the video");
}

std::int64_t mochi_embedders(const Part& part, const Architecture& a) {
    const std::int64_t h = a.hidden, from = a.condition_dim, text = needed(part, key::pooled_dim);
    const std::int64_t pooler = from * (3 * from + h);
    // The last block has no text behind its attention.
    const std::int64_t missing = 2 * text * h + 3 * text * (4 * text * 2 / 3) + 3 * text * h;
    return 2 * a.in_channels * h + from * text + pooler + h * (time_sines + h) + 2 * h * h - missing;
}

void cosmos_blocks(const Part& part, Architecture& a) {
    cross_blocks(part, a, needed(part, key::text_dim));
    const auto ratio = given(part, key::ratio);
    if (ratio) a.ffn = std::llround(ratio->number(0.01, 1000) * static_cast<double>(a.hidden));
    a.condition_dim = a.cross_attention_dim;
    a.attention.qk_norm = true;
    a.modulation = 3 * needed(part, key::modulation_rank) * 4 * a.hidden;
}

std::int64_t cosmos_embedders(const Part& part, const Architecture& a) {
    const std::int64_t h = a.hidden, rank = needed(part, key::modulation_rank);
    return h * (2 * a.in_channels + 4 * h + 3 * rank);
}

void kandinsky_blocks(const Part& part, Architecture& a) {
    cross_blocks(part, a, a.hidden);
    a.ffn = needed(part, key::dit_ffn);
    a.condition_dim = needed(part, key::text_dim);
    a.attention.qk_norm = true;
    a.modulation = 9 * a.hidden * needed(part, key::time_dim);
}

std::int64_t kandinsky_embedders(const Part& part, const Architecture& a) {
    const std::int64_t h = a.hidden, time = needed(part, key::time_dim);
    const std::int64_t of_text = needed(part, key::text_blocks) * (4 * h * h + 2 * h * a.ffn + 6 * h * time);
    return of_text + h * (2 * a.in_channels + a.condition_dim + time + 2 * time) + time * time;
}

void lumina_blocks(const Part& part, Architecture& a) {
    one_stream(part, a);
    a.kv_heads = needed(part, key::dit_kv_heads);
    const auto wider = given(part, key::ffn_multiplier);
    const std::int64_t multiple = needed(part, key::multiple);
    const auto inner =
        static_cast<std::int64_t>((wider ? wider->number(0.01, 100) : 1) * static_cast<double>(4 * a.hidden));
    a.ffn = (inner + multiple - 1) / multiple * multiple;
    a.gated = true;
    a.condition_dim = needed(part, key::text_dim);
    a.modulation = 4 * a.hidden * std::min<std::int64_t>(a.hidden, 1024);
}

void z_image_blocks(const Part& part, Architecture& a) {
    one_stream(part, a);
    a.ffn = a.hidden * 8 / 3;
    a.gated = true;
    a.condition_dim = needed(part, key::text_dim);
    a.modulation = 4 * a.hidden * std::min<std::int64_t>(a.hidden, 256);
}

std::int64_t refined_embedders(const Part& part, const Architecture& a) {
    const std::int64_t h = a.hidden, keys = 2 * a.kv_heads * a.head_dim, time = a.modulation / (4 * h);
    const std::int64_t block = h * (2 * h + keys) + 3 * h * a.ffn;
    return needed(part, key::refiners) * (2 * block + a.modulation) + h * (2 * a.in_channels + a.condition_dim + time) +
           time * (time_sines + time);
}

// One network makes the modulation of all blocks.
void chroma_blocks(const Part& part, Architecture& a) {
    flux_blocks(part, a);
    const std::int64_t inner = needed(part, key::approximator_width), in = needed(part, key::approximator_in);
    const std::int64_t all = inner * (in + 2 * needed(part, key::approximator_layers) * inner + a.hidden);
    a.modulation = all / a.layers;
    assume(*part.reading, "the network that makes the modulation of all blocks is taken as shared out over them");
}

std::int64_t chroma_embedders(const Part& /*part*/, const Architecture& a) {
    return a.hidden * (2 * a.in_channels + a.condition_dim);
}

}  // namespace pipeweaver::workloads::hf
