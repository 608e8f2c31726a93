// What stages take for samples, and packs made of that.
#include "pipeweaver/loader/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::loader {

namespace {

using workloads::Item;
using workloads::Modality;

// Of an image at its own size, where that is known: by the model's patches, or its tokens where it has none.
std::int64_t pixels_of(const Item& item, const workloads::Model& model) {
    const std::int64_t side = item.patches > 0 ? model.image.patch : model.image.patch * model.image.merge;
    std::int64_t resized = item.patches > 0 ? item.patches : item.tokens;
    // A head has the positions of what it predicts so many times for each token.
    if (item.target && item.tokens > 0 && item.patches > item.tokens)
        resized = item.tokens * model.image.merge * model.image.merge;
    return (item.own > 0 ? item.own : resized) * side * side;
}

// Exact for whole numbers: doubles have all of them up to most_work.
Duration scaled(Duration rate, double by) {
    const double ns = static_cast<double>(rate.count()) * by;
    return ns < static_cast<double>(most_work.count()) ? Duration{std::llround(ns)} : most_work;
}

Duration time_of_item(const Rates& rates, const Item& item, const workloads::Model& model) {
    switch (item.modality) {
        case Modality::image:
            return add_work(rates.image, scaled(rates.megapixel, static_cast<double>(pixels_of(item, model)) * 1e-6));
        case Modality::video:
            return add_work(rates.clip, scaled(rates.clip_second, item.seconds));
        case Modality::audio:
            return add_work(rates.audio, scaled(rates.audio_second, item.seconds));
        case Modality::text:
            break;
    }
    return {};
}

// Whether any stage has a rate for items of this kind.
bool counts(const Loader& loader, Modality modality) {
    return std::any_of(loader.stages.begin(), loader.stages.end(), [&](const Stage& stage) {
        const Rates& rates = stage.rates;
        const Duration most = modality == Modality::image   ? std::max(rates.image, rates.megapixel)
                              : modality == Modality::video ? std::max(rates.clip, rates.clip_second)
                                                            : std::max(rates.audio, rates.audio_second);
        return most > Duration{};
    });
}

bool counts_text(const Stage& stage) {
    return std::max({stage.rates.token, stage.rates.sample, stage.rates.pack}) > Duration{};
}

void add_text(const Loader& loader, const std::vector<workloads::Sample>& samples, std::vector<std::string>& said) {
    std::int64_t tokens = 0;
    for (const workloads::Sample& sample : samples) tokens += sample.text_tokens;
    if (tokens == 0) return;
    const auto any = [&](const auto& is) { return std::any_of(loader.stages.begin(), loader.stages.end(), is); };
    const auto reads = [](const Stage& stage) { return stage.on == On::storage; };
    if (!any(counts_text))
        said.push_back(
            fmt::format("loader '{}' has no rate for text, of which there are {} tokens: they are taken for "
                        "nothing",
                        loader.name, tokens));
    else if (any(reads) && !any([&](const Stage& stage) { return reads(stage) && counts_text(stage); }))
        said.push_back(
            fmt::format("loader '{}' reads text for nothing: its stages on storage have no rate for it", loader.name));
}

}  // namespace

Duration time_of(const Stage& stage, const workloads::Sample& sample, const workloads::Model& model) {
    Duration time = add_work(stage.rates.sample, scaled(stage.rates.token, static_cast<double>(sample.text_tokens)));
    for (const Item& item : sample.items) time = add_work(time, time_of_item(stage.rates, item, model));
    return time;
}

Pack pack_of(const Loader& loader, const workloads::Microbatch& microbatch,
             const std::vector<workloads::Sample>& samples, const workloads::Model& model) {
    Pack pack;
    pack.samples = static_cast<std::int64_t>(microbatch.samples.size());
    const auto add = [&](const Stage& stage, Duration time) {
        if (stage.on == On::copy)
            pack.copy = add_work(pack.copy, time);
        else if (time > Duration{})
            pack.pieces.push_back({time, stage.on == On::core});
    };
    for (const std::size_t sample : microbatch.samples)
        for (const Stage& stage : loader.stages) add(stage, time_of(stage, samples[sample], model));
    for (const Stage& stage : loader.stages) add(stage, stage.rates.pack);
    return pack;
}

std::vector<std::string> not_counted(const Loader& loader, const std::vector<workloads::Sample>& samples) {
    std::vector<std::string> said;
    for (const Modality modality : {Modality::image, Modality::video, Modality::audio}) {
        std::size_t items = 0;
        for (const workloads::Sample& sample : samples)
            items += static_cast<std::size_t>(std::count_if(
                sample.items.begin(), sample.items.end(), [&](const Item& item) { return item.modality == modality; }));
        if (items > 0 && !counts(loader, modality))
            said.push_back(
                fmt::format("loader '{}' has no rate for {}, of which there are {}: they are taken for nothing",
                            loader.name, name_of(modality), items));
    }
    add_text(loader, samples, said);
    return said;
}

}  // namespace pipeweaver::loader
