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

// So many positions of the items of which an encoder reads most for each.
std::optional<Item> filling(const std::vector<Item>& items, std::int64_t tokens) {
    if (std::any_of(items.begin(), items.end(), [](const Item& one) { return one.tokens == 0; })) return std::nullopt;
    Item most = *std::max_element(items.begin(), items.end(), [](const Item& a, const Item& b) {
        return a.patches * b.tokens < b.patches * a.tokens;
    });
    most.patches = (tokens * most.patches + most.tokens - 1) / most.tokens;
    most.seconds = most.seconds * static_cast<double>(tokens) / static_cast<double>(most.tokens);
    most.tokens = tokens;
    most.own = 0;
    most.spans = 1;
    return most;
}

}  // namespace

std::vector<FilledSample> filled_samples(const Model& model, std::int64_t tokens) {
    const ItemRules rules(model);
    std::vector<FilledSample> filled;
    if (rules.takes_text()) filled.push_back({Modality::text, {"longest", tokens, tokens, {}}});
    for (const Modality modality : {Modality::image, Modality::video, Modality::audio}) {
        if (!rules.takes(modality, false)) continue;
        if (modality == Modality::audio && pads_audio(model)) return {};
        const auto item = filling(probes(rules, modality), tokens);
        if (!item) return {};
        filled.push_back({modality, {"longest", 0, 0, {*item}}});
    }
    return filled;
}

}  // namespace pipeweaver::workloads
