#include "workloads/hf/projectors.hpp"

#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipeweaver::workloads::hf {

namespace {

ModelEdge widths(std::int64_t in, std::int64_t hidden, std::int64_t out) {
    ModelEdge edge;
    edge.projector_in = in;
    edge.projector_hidden = hidden;
    edge.projector_out = out;
    return edge;
}

// Several matrices as two of as many parameters, which are as many FLOPs.
ModelEdge two_of(const Towers& towers, std::int64_t in, std::int64_t out, std::int64_t parameters) {
    assume(*towers.root.reading, "the matrices of the projector are taken as two of as many parameters");
    return widths(in, (parameters + (in + out) / 2) / (in + out), out);
}

std::int64_t merged(const Towers& towers) { return towers.merge * towers.merge * towers.vit.hidden; }

Reading& reading(const Towers& towers) { return *towers.root.reading; }

}  // namespace

std::int64_t merge_one(const Towers& /*towers*/) { return 1; }

std::int64_t merge_spatial(const Towers& towers) {
    if (given(towers.vision, key::merge)) return needed(towers.vision, key::merge);
    if (given(towers.root, key::merge)) return needed(towers.root, key::merge);
    return needed(towers.vision, key::merge);
}

std::int64_t merge_kernel(const Towers& towers) {
    const auto kernel = given(towers.vision, key::merge_kernel);
    if (!kernel) {
        assume(reading(towers), "2 x 2 patches make a token: there is no merge_kernel_size");
        return 2;
    }
    return square(towers.vision, key::merge_kernel);
}

std::int64_t merge_shuffle(const Towers& towers) {
    for (const Part* part : {&towers.root, &towers.vision})
        if (const auto ratio = given(*part, key::shuffle)) return std::llround(1 / ratio->number(0.01, 1));
    assume(reading(towers), "2 x 2 patches make a token: there is no downsample_ratio");
    return 2;
}

std::int64_t merge_scale(const Towers& towers) {
    if (const auto scale = size(towers.root, key::scale)) return *scale;
    assume(reading(towers), "2 x 2 patches make a token: there is no scale_factor");
    return 2;
}

std::int64_t merge_pooled(const Towers& towers) {
    std::int64_t tokens = 256;
    if (const auto said = size(towers.root, key::image_tokens))
        tokens = *said;
    else
        assume(reading(towers), "an image is 256 tokens: there is no mm_tokens_per_image");
    const std::int64_t side = towers.vit.image_size / towers.vit.patch_size;
    const auto of_tokens = std::llround(std::sqrt(static_cast<double>(tokens)));
    if (of_tokens * of_tokens != tokens || side % of_tokens != 0)
        refuse(towers.root,
               fmt::format("mm_tokens_per_image ({}) is no square that divides {} x {} patches", tokens, side, side));
    return side / of_tokens;
}

std::int64_t merge_pooling(const Towers& towers) {
    if (const auto kernel = size(towers.vision, key::pooling)) return *kernel;
    assume(reading(towers), "3 x 3 patches make a token: there is no pooling_kernel_size");
    return 3;
}

std::int64_t merge_tiles(const Towers& towers) { return 2 * (towers.vit.image_size / towers.vit.patch_size); }

std::int64_t merge_downsampled(const Towers& towers) { return needed(towers.root, key::downsample); }

std::int64_t merge_queries(const Towers& towers) {
    const std::int64_t side = needed(towers.root, key::image) / towers.vit.patch_size;
    const std::int64_t queries = needed(towers.root, key::queries);
    const auto of_queries = std::llround(std::sqrt(static_cast<double>(queries)));
    if (of_queries * of_queries != queries || side % of_queries != 0)
        refuse(towers.root,
               fmt::format("query_num ({}) is no square that divides {} x {} patches", queries, side, side));
    return side / of_queries;
}

std::int64_t merge_pairs(const Towers& towers) {
    assume(reading(towers), "an attention pools 2 x 2 patches to a token");
    return 2;
}

std::int64_t merge_convolved(const Towers& towers) {
    assume(reading(towers), "a convolution makes one token of 2 x 2 patches");
    return 2;
}

ModelEdge project_merged(const Towers& towers) {
    const std::int64_t in = merged(towers);
    std::int64_t mergers = 1;
    if (const auto inner = given(towers.vision, key::deepstack)) mergers += static_cast<std::int64_t>(inner->size());
    if (mergers > 1)
        assume(reading(towers), fmt::format("{} inner layers of the encoder feed the language model: their projectors "
                                            "are taken as one with the last, what they hand over is not sent apart",
                                            mergers - 1));
    return widths(in, mergers * in, towers.llm.hidden);
}

ModelEdge project_shuffled(const Towers& towers) {
    return widths(merged(towers), towers.llm.hidden, towers.llm.hidden);
}

ModelEdge project_twice(const Towers& towers) {
    return widths(towers.vit.hidden, towers.llm.hidden, towers.llm.hidden);
}

ModelEdge project_once(const Towers& towers) { return widths(towers.vit.hidden, 0, towers.llm.hidden); }

ModelEdge project_joined(const Towers& towers) { return widths(merged(towers), 0, towers.llm.hidden); }

ModelEdge project_mistral(const Towers& towers) {
    const std::int64_t in = merged(towers), v = towers.vit.hidden, t = towers.llm.hidden;
    return two_of(towers, in, t, in * v + v * t + t * t);
}

ModelEdge project_glm(const Towers& towers) {
    const std::int64_t in = merged(towers), out = needed(towers.vision, key::out_hidden);
    const std::int64_t inner = needed(towers.vision, key::ffn);
    return two_of(towers, in, towers.llm.hidden, in * out + out * out + 3 * out * inner);
}

ModelEdge project_chatglm(const Towers& towers) {
    const std::int64_t in = merged(towers), t = towers.llm.hidden;
    return two_of(towers, in, t, in * t + t * t + 3 * t * towers.llm.ffn);
}

ModelEdge project_llama4(const Towers& towers) {
    const std::int64_t in = merged(towers), t = towers.llm.hidden;
    const std::int64_t inner = needed(towers.vision, key::projector_in),
                       outer = needed(towers.vision, key::projector_out);
    return two_of(towers, in, t, in * inner + inner * outer + outer * t);
}

ModelEdge project_mllama(const Towers& towers) {
    return widths(needed(towers.vision, key::vision_output), 0, towers.llm.hidden);
}

ModelEdge project_aligned(const Towers& towers) {
    const std::int64_t in = merged(towers), t = towers.llm.hidden, inner = needed(towers.root, key::alignment);
    return two_of(towers, in, t, in * inner + inner / 2 * t);
}

ModelEdge project_expanded(const Towers& towers) {
    return widths(merged(towers), needed(towers.root, key::projector_hidden), towers.llm.hidden);
}

ModelEdge project_visual_words(const Towers& towers) {
    return widths(merged(towers), needed(towers.root, key::visual_vocab), towers.llm.hidden);
}

ModelEdge project_pooled(const Towers& towers) {
    const auto member = given(towers.root, key::adapter_part);
    if (!member) refuse(towers.root, "the key 'adapter_config' is missing");
    const Part adapter{*member, towers.root.reading, "adapter_config"};
    const auto kept = given(adapter, key::kept_layers);
    const std::int64_t read = kept ? static_cast<std::int64_t>(kept->size()) : 1;
    const std::int64_t v = read * towers.vit.hidden, h = needed(adapter, key::hidden), t = towers.llm.hidden;
    const std::int64_t inner = needed(adapter, key::ffn);
    return two_of(towers, v, t, 3 * v * h + h * h + 2 * h * inner + inner * t);
}

std::int64_t merge_strides(const Towers& towers) { return 2 * needed(towers.root, key::stride); }

ModelEdge project_strides(const Towers& towers) {
    const std::int64_t v = towers.vit.hidden, o = needed(towers.vision, key::out_hidden), t = towers.llm.hidden;
    return two_of(towers, merged(towers), t, 4 * v * o + 9 * o * 2 * o + 2 * o * t);
}

ModelEdge project_doubled(const Towers& towers) {
    const std::int64_t v = towers.vit.hidden, t = towers.llm.hidden;
    return two_of(towers, merged(towers), t, 9 * v * 2 * v + 9 * 2 * v * 4 * v + 4 * v * t);
}

ModelEdge project_frames(const Towers& towers) {
    const std::int64_t in = merged(towers), t = towers.llm.hidden;
    assume(reading(towers), "the resampler takes two frames together, of an image the same twice");
    return two_of(towers, in, t, 5 * in * in + in * t);
}

ModelEdge project_resampled(const Towers& towers) {
    const std::int64_t v = towers.vit.hidden, t = towers.llm.hidden;
    assume(reading(towers), "the resampler's keys and values are made of its queries' positions, as many as tokens");
    return two_of(towers, v, t, v * t + 5 * t * t);
}

void kept_layers(Towers& towers) {
    const auto member = given(towers.root, key::adapter_part);
    if (!member) return;
    const auto kept = given({*member, towers.root.reading, "adapter_config"}, key::kept_layers);
    if (!kept) return;
    if (kept->elements().empty()) kept->fail("is empty, at least one layer is needed");
    std::int64_t last = 0;
    for (const Json& entry : kept->elements()) {
        const std::int64_t layer = entry.integer(-towers.vit.layers, towers.vit.layers - 1);
        last = std::max(last, layer < 0 ? towers.vit.layers + layer : layer);
    }
    towers.vit.layers = last + 1;
}

std::string_view minicpm_text(const Part& file) {
    constexpr Key release{"version"};
    const auto version = given(file, release);
    if (!version) refuse(file, "the key 'version' is missing");
    const std::string said = version->is_string() ? version->text() : fmt::format("{}", version->number(0, 1000));
    if (said == "4.5") return "qwen3";
    if (said == "2.6") return "qwen2";
    refuse(*version, *file.reading, "is not 2.6 nor 4.5, whose language models alone are known by it");
}

}  // namespace pipeweaver::workloads::hf
