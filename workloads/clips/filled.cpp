// What no sample of so many positions brings a model more of.
#include "pipeweaver/workloads/batch.hpp"
#include "workloads/items.hpp"
#include "workloads/model_parts.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace pipeweaver::workloads {

namespace {

// Whose processors hand audio on as long as it is: others pad each piece to half a minute, however few positions of
// the sequence it takes (transformers, models/qwen2_5_omni and qwen3_omni_moe processing_*.py; qwen2_audio pads).
constexpr std::array<std::string_view, 2> reads_audio_as_long_as_it_is{"qwen2_5_omni", "qwen3_omni_moe"};

bool pads_audio(const Model& model) {
    return std::find(reads_audio_as_long_as_it_is.begin(), reads_audio_as_long_as_it_is.end(), model.family) ==
           reads_audio_as_long_as_it_is.end();
}

// Items of several sizes.
std::vector<Item> probes(const ItemRules& rules, Modality modality) {
    constexpr double seconds = 8;
    std::vector<Item> items;
    if (modality == Modality::audio) return {rules.audio(seconds, false)};
    using Size = std::pair<std::int64_t, std::int64_t>;
    constexpr std::array sizes{Size{56, 56}, Size{448, 448}, Size{1344, 336}, Size{2048, 2048}};
    for (const auto& [width, height] : sizes)
        items.push_back(modality == Modality::image ? rules.image(width, height, false)
                                                    : rules.video({seconds, {}, width, height}, false));
    return items;
}

// Those of which an encoder reads most for each position. None: it reads some that take no position.
std::optional<Item> busiest(const std::vector<Item>& items) {
    if (std::any_of(items.begin(), items.end(), [](const Item& one) { return one.tokens == 0; })) return std::nullopt;
    return *std::max_element(items.begin(), items.end(),
                             [](const Item& a, const Item& b) { return a.patches * b.tokens < b.patches * a.tokens; });
}

Item scaled(Item item, std::int64_t tokens) {
    item.patches = (tokens * item.patches + item.tokens - 1) / item.tokens;
    item.seconds = item.seconds * static_cast<double>(tokens) / static_cast<double>(item.tokens);
    item.tokens = tokens;
    item.own = 0;
    item.spans = 1;
    return item;
}

// Where an image has no more positions than the rule says, however large it is (Gemma 3's pan and scan is off by
// default). Others are cut into tiles that the rule does not count, or scaled to limits that are assumed.
bool bounds_one_image(const Model& model) {
    constexpr std::array<std::string_view, 3> of_one_square{"gemma3", "llava", "paligemma"};
    if (model.image.fixed_pixels == 0) return model.image.resize == ImageResize::fill;
    return std::find(of_one_square.begin(), of_one_square.end(), model.family) != of_one_square.end();
}

// Items as large as they may be, of which the last takes what is left, or text behind `count` of them.
Sample filled_with(const Item& like, std::int64_t most, std::int64_t tokens, std::int64_t count) {
    Sample sample{"longest", 0, 0, {}};
    std::int64_t left = tokens;
    for (std::int64_t item = 0; left > 0 && item < count; ++item, left -= most)
        sample.items.push_back(scaled(like, std::min(left, most)));
    sample.text_tokens = sample.loss_tokens = std::max<std::int64_t>(0, left);
    return sample;
}

// Positions of the largest image; clips and audio may have any number.
std::int64_t most_positions(const Model& model, Modality modality, const Item& like, std::int64_t tokens) {
    if (modality != Modality::image) return tokens;
    if (model.image.fixed_pixels > 0) return like.tokens;
    return model.image.max_tokens > 0 ? model.image.max_tokens : tokens;
}

}  // namespace

std::vector<FilledSample> filled_samples(const Model& model, std::int64_t tokens, std::optional<std::int64_t> images) {
    const ItemRules rules(model);
    std::vector<FilledSample> filled;
    // An image that is attended to beside the sequence takes one position of it, however large it is.
    if (model.modules[model.backbone()].architecture.cross_attention_dim > 0) return {};
    if (rules.takes_text()) filled.push_back({Modality::text, {"longest", tokens, tokens, {}}});
    for (const Modality modality : {Modality::image, Modality::video, Modality::audio}) {
        if (!rules.takes(modality, false) || (images && (modality != Modality::image || *images == 0))) continue;
        if (modality == Modality::audio && pads_audio(model)) return {};
        const auto like = busiest(probes(rules, modality));
        if (!like) return {};
        const std::int64_t count = bounds_one_image(model) ? images.value_or(tokens) : tokens;
        filled.push_back({modality, filled_with(*like, most_positions(model, modality, *like, tokens), tokens, count)});
    }
    return filled;
}

}  // namespace pipeweaver::workloads
