// Samples drawn from published size distributions.
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/base/text.hpp"
#include "workloads/embedded.hpp"
#include "workloads/fields.hpp"
#include "workloads/items.hpp"
#include "workloads/packing/bins.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace pipeweaver::workloads {

namespace {

// Images of models that read them in their own resolution: the data sets give counts, not sizes.
constexpr std::int64_t assumed_side = 512;

struct Quantiles {
    std::vector<std::pair<double, double>> points;  // probability, value: both climb
    bool floor = false;                             // how a whole number is made of the value

    // Inverse of the distribution function, linear between the points.
    double at(double probability) const {
        const auto above = std::upper_bound(points.begin(), points.end(), probability,
                                            [](double p, const auto& point) { return p < point.first; });
        if (above == points.begin()) return points.front().second;
        if (above == points.end()) return points.back().second;
        const auto& [p0, v0] = *(above - 1);
        const auto& [p1, v1] = *above;
        return v0 + (v1 - v0) * (probability - p0) / (p1 - p0);
    }

    std::int64_t count_at(double probability) const {
        const double value = at(probability);
        return static_cast<std::int64_t>(floor ? std::floor(value) : std::nearbyint(value));
    }
};

struct Dataset {
    DatasetInfo info;
    std::optional<Quantiles> images, video_seconds, audio_seconds, text_tokens;
    std::vector<std::pair<std::string, double>> mixture;  // name, weight
};

std::optional<Quantiles> parse_quantiles(const Json& dataset, std::string_view key) {
    const auto json = dataset.find(key);
    if (!json) return std::nullopt;
    json->only_keys({"q", "integer"});
    Quantiles quantiles;
    for (const Json& point : json->at("q").elements()) {
        quantiles.points.emplace_back(point[0].number(0, 1), point[1].number(0, 1e9));
        if (quantiles.points.size() > 1 && (quantiles.points.end() - 2)->first >= quantiles.points.back().first)
            point.fail("the probabilities do not climb");
    }
    quantiles.floor = text_or(*json, "integer", "round") == "floor";
    return quantiles;
}

Dataset parse_dataset(const Json& json) {
    json.only_keys(
        {"name", "images", "video_seconds", "audio_seconds", "text_tokens", "mixture", "fitted_to", "assumed"});
    Dataset dataset;
    dataset.info = {json.at("name").text(), json.at("fitted_to").text(), json.at("assumed").boolean()};
    dataset.images = parse_quantiles(json, "images");
    dataset.video_seconds = parse_quantiles(json, "video_seconds");
    dataset.audio_seconds = parse_quantiles(json, "audio_seconds");
    dataset.text_tokens = parse_quantiles(json, "text_tokens");
    if (const auto mixture = json.find("mixture"))
        for (const Json& part : mixture->elements())
            dataset.mixture.emplace_back(part.at("dataset").text(), part.at("weight").number(1e-9, 1e9));
    return dataset;
}

// Constant once made: parsed at the first call, shared by all.
const std::vector<Dataset>& known_datasets() {
    static const std::vector<Dataset> embedded = [] {
        const JsonDocument document("datasets.json", embedded_datasets());
        document.require_format("pipeweaver-datasets", 1);
        std::vector<Dataset> all;
        for (const Json& entry : document.root().at("datasets").elements()) all.push_back(parse_dataset(entry));
        return all;
    }();
    return embedded;
}

// Null: there is none.
const Dataset* known_dataset(std::string_view name) {
    const auto& known = known_datasets();
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const Dataset& one) { return one.info.name == name; });
    return found == known.end() ? nullptr : &*found;
}

std::string unknown_dataset(std::string_view name) {
    std::vector<std::string> names;
    for (const Dataset& dataset : known_datasets()) names.push_back(dataset.info.name);
    return unknown("data set", name, names);
}

// Items are read where the model reads them, else made.
bool as_target(const ItemRules& rules, Modality modality) { return !rules.takes(modality, false); }

// Why the model takes no items of that modality; none: it does.
std::optional<std::string> why_not_taken(std::string_view dataset, Modality modality, const Model& model,
                                         const ItemRules& rules) {
    if (rules.takes(modality, false) || rules.takes(modality, true)) return std::nullopt;
    return fmt::format("data set '{}' has {} items, which the model '{}' neither reads nor makes", dataset,
                       name_of(modality), model.name);
}

// Pre: it is known.
const Dataset& part_called(const std::string& name) {
    const Dataset* const part = known_dataset(name);
    PIPEWEAVER_ASSERT(part != nullptr);
    return *part;
}

std::optional<std::string> why_not_readable(const Dataset& dataset, const Model& model, const ItemRules& rules) {
    const std::pair<Modality, const std::optional<Quantiles>*> kinds[] = {{Modality::image, &dataset.images},
                                                                          {Modality::video, &dataset.video_seconds},
                                                                          {Modality::audio, &dataset.audio_seconds}};
    for (const auto& [modality, quantiles] : kinds)
        if (*quantiles)
            if (auto why = why_not_taken(dataset.info.name, modality, model, rules)) return why;
    for (const auto& part : dataset.mixture)
        if (auto why = why_not_readable(part_called(part.first), model, rules)) return why;
    return std::nullopt;
}

const Dataset& choose(const Dataset& dataset, Random& random) {
    double sum = 0;
    for (const auto& part : dataset.mixture) sum += part.second;
    double left = random.uniform() * sum;
    for (const auto& [name, weight] : dataset.mixture) {
        if (left < weight) return part_called(name);
        left -= weight;
    }
    return part_called(dataset.mixture.back().first);
}

Sample sample_of(const Dataset& dataset, const ItemRules& rules, Random& random) {
    Sample sample;
    if (dataset.images) {
        const std::int64_t count = dataset.images->count_at(random.uniform());
        Item image = rules.image(assumed_side, assumed_side, as_target(rules, Modality::image));
        image.own = 0;  // the data set does not say it
        sample.items.assign(static_cast<std::size_t>(count), image);
    }
    if (dataset.video_seconds) {
        Item clip = rules.video({dataset.video_seconds->at(random.uniform())}, as_target(rules, Modality::video));
        clip.own = 0;  // nor its size and frames
        sample.items.push_back(clip);
    }
    if (dataset.audio_seconds)
        sample.items.push_back(
            rules.audio(dataset.audio_seconds->at(random.uniform()), as_target(rules, Modality::audio)));
    if (dataset.text_tokens && rules.takes_text()) sample.text_tokens = dataset.text_tokens->count_at(random.uniform());
    return sample;
}

// Makes the sample fit a microbatch: items beyond the limits go first from the end, then text gives way to the rest.
void cut(Sample& sample, const Model& model) {
    std::int64_t tokens = 0, items = 0;
    double seconds = 0;
    std::erase_if(sample.items, [&](const Item& item) {
        const double clip = item.modality == Modality::video ? item.seconds : 0;
        if (tokens + item.tokens > model.microbatch_tokens) return true;
        if (model.most_items > 0 && items == model.most_items) return true;
        if (model.most_video_seconds > 0 && seconds + clip > model.most_video_seconds) return true;
        tokens += item.tokens;
        seconds += clip;
        ++items;
        return false;
    });
    sample.text_tokens = std::min(sample.text_tokens, model.microbatch_tokens - tokens);
}

// FNV-1a: one stream of random numbers for each data set.
std::uint64_t hash(std::string_view text) {
    std::uint64_t value = 0xcbf29ce484222325;
    for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return value;
}

constexpr std::string_view constant = "constant-", uniform = "uniform-";

// A whole number, or any from the first to the last.
struct Range {
    std::int64_t first = 0, last = 0;

    std::int64_t drawn(Random& random) const {
        if (first == last) return first;  // takes no random number
        return first + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last - first + 1)));
    }
};

// What "constant-4096", "constant-40+1x336px", "constant-0+5.8s@2fps+12s-audio" say: tokens of text, images and their
// side, a clip, a piece of audio; and "uniform-100..400+1x448..1000px" with ranges.
struct SaidSizes {
    Range text, side;
    std::int64_t images = 0;
    double seconds = 0, most_seconds = 0;  // of the clip; 0: none
    std::optional<double> fps;
    double audio_seconds = 0;
};

template <class Number>
bool take_number(std::string_view& text, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

bool take(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
}

bool take_range(std::string_view& text, Range& range, bool ranges) {
    if (!take_number(text, range.first)) return false;
    range.last = range.first;
    return !ranges || !take(text, "..") || take_number(text, range.last);
}

constexpr double least_said_seconds = 1e-3, most_said_seconds = 1e6, most_said_fps = 1e4;

// "+5.8s" or "+5.8s@2fps", with ranges "+2..8s"; false where it says what cannot be.
bool take_clip(std::string_view& text, SaidSizes& sizes, bool ranges) {
    std::string_view rest = text;
    double seconds = 0, fps = 0;
    if (!take(rest, "+")) return true;
    const std::size_t dots = ranges ? rest.find("..") : std::string_view::npos;
    std::string_view first = rest.substr(0, dots);  // "2..8" would be read as "2." and the rest
    if (!take_number(first, seconds)) return true;
    double last = seconds;
    if (dots != std::string_view::npos) {
        if (!first.empty()) return true;
        first = rest.substr(dots + 2);
        if (!take_number(first, last)) return true;
    }
    rest = first;
    if (!take(rest, "s") || rest.starts_with("-audio")) return true;
    if (std::string_view rate = rest; take(rate, "@") && take_number(rate, fps) && take(rate, "fps")) {
        rest = rate;
        sizes.fps = fps;
    }
    text = rest;
    sizes.seconds = seconds;
    sizes.most_seconds = last;
    const bool possible_rate = !sizes.fps || (fps >= 1e-3 && fps <= most_said_fps);
    return seconds >= least_said_seconds && last >= seconds && last <= most_said_seconds && possible_rate;
}

// "+12s-audio"
bool take_audio(std::string_view& text, SaidSizes& sizes) {
    std::string_view rest = text;
    double seconds = 0;
    if (!take(rest, "+") || !take_number(rest, seconds) || !take(rest, "s-audio")) return true;
    text = rest;
    sizes.audio_seconds = seconds;
    return seconds >= least_said_seconds && seconds <= most_said_seconds;
}

std::optional<SaidSizes> sizes_in(std::string_view text, bool ranges) {
    constexpr std::int64_t most_images = 100'000, most_side = 100'000;
    SaidSizes sizes;
    if (!take_range(text, sizes.text, ranges) || sizes.text.first < 0 || sizes.text.last < sizes.text.first)
        return std::nullopt;
    const auto in = [](auto value, auto low, auto high) { return value >= low && value <= high; };
    bool possible = true;
    if (std::string_view rest = text; take(rest, "+") && take_number(rest, sizes.images) && take(rest, "x") &&
                                      take_range(rest, sizes.side, ranges) && take(rest, "px")) {
        text = rest;
        possible = in(sizes.images, 1, most_images) && in(sizes.side.first, 1, most_side) &&
                   in(sizes.side.last, sizes.side.first, most_side);
    } else {
        sizes.images = 0;
    }
    possible = take_clip(text, sizes, ranges) && possible;
    possible = take_audio(text, sizes) && possible;
    const bool something = sizes.text.first > 0 || sizes.images > 0 || sizes.seconds > 0 || sizes.audio_seconds > 0;
    return text.empty() && something && possible ? std::optional(sizes) : std::nullopt;
}

bool says_sizes(std::string_view name) { return name.starts_with(constant) || name.starts_with(uniform); }

std::optional<SaidSizes> said_sizes(std::string_view name) {
    const bool ranges = name.starts_with(uniform);
    return sizes_in(name.substr(ranges ? uniform.size() : constant.size()), ranges);
}

std::string wrong_sizes(std::string_view name) {
    return fmt::format(
        "data set '{}': allowed are constant-4096 (tokens of text), constant-40+1x336px (and images of so many "
        "pixels a side), constant-0+5.8s or constant-0+5.8s@2fps (and a clip of so many seconds, of so many frames "
        "a second), constant-40+12s-audio (and audio), uniform-100..400+1x448..1000px or uniform-0+2..8s (any number "
        "from the first to the last)",
        name);
}

// Why the model does not take what the sizes say; none: it does.
std::optional<std::string> why_not_taken(std::string_view name, const SaidSizes& sizes, const Model& model,
                                         const ItemRules& rules) {
    const std::pair<Modality, bool> said[] = {{Modality::image, sizes.images > 0},
                                              {Modality::video, sizes.seconds > 0},
                                              {Modality::audio, sizes.audio_seconds > 0}};
    for (const auto& [modality, any] : said)
        if (any)
            if (auto why = why_not_taken(name, modality, model, rules)) return why;
    return std::nullopt;
}

DrawnSample said_sample(std::string_view name, const Model& model, std::uint64_t seed, std::uint64_t number) {
    const auto said = said_sizes(name);
    if (!said) return {{}, wrong_sizes(name)};
    const SaidSizes& sizes = *said;
    const ItemRules rules(model);
    if (auto why = why_not_taken(name, sizes, model, rules)) return {{}, std::move(*why)};
    Sample sample;
    Random random(seed ^ hash(name), number);
    sample.text_tokens = sample.loss_tokens = sizes.text.drawn(random);
    sample.items.reserve(static_cast<std::size_t>(sizes.images) + 2);
    for (std::int64_t i = 0; i < sizes.images; ++i) {
        const std::int64_t side = sizes.side.drawn(random);
        sample.items.push_back(rules.image(side, side, as_target(rules, Modality::image)));
    }
    if (sizes.seconds > 0) {
        const double more = sizes.most_seconds - sizes.seconds;  // one alone takes no random number
        const double seconds = sizes.seconds + (more > 0 ? more * random.uniform() : 0);
        sample.items.push_back(rules.video({seconds, sizes.fps}, as_target(rules, Modality::video)));
    }
    if (sizes.audio_seconds > 0)
        sample.items.push_back(rules.audio(sizes.audio_seconds, as_target(rules, Modality::audio)));
    if (model.too_long == TooLong::usual && sample.tokens() > model.microbatch_tokens)
        return {{},
                fmt::format("data set '{}': a sample has {} tokens, allowed are at most {}: a microbatch of '{}' ({})",
                            name, sample.tokens(), model.microbatch_tokens, model.name, who_says_tokens(model))};
    return {std::move(sample), {}};
}

// What becomes of the width and height of its clips.
std::string clip_sizes(std::string_view dataset, const VideoRule& rule) {
    const VideoRule usual = usual_size(rule);
    if (!rule.keeps_sizes()) return fmt::format("are scaled to {} x {} pixels", rule.width, rule.height);
    if (dataset.empty())
        return fmt::format("keep their sizes, to whole latent patches of {0} x {0} pixels,", rule.spatial);
    return fmt::format("are taken as {} x {} pixels, since {} has no sizes of them,", usual.width, usual.height,
                       dataset);
}

std::string sampled_clips(std::string_view dataset, const VideoRule& rule) {
    const std::string sizes = dataset.empty()
                                  ? std::string()
                                  : fmt::format("; they are taken as {} x {} pixels, since {} has no sizes of them",
                                                rule.width, rule.height, dataset);
    return fmt::format(
        "clips given by seconds or frames are read at {:.6g} frames a second, {} to {} of each (video of the model){}",
        rule.sampled->fps, rule.sampled->min_frames, rule.sampled->max_frames, sizes);
}

// Whether the data set only counts images that the model reads in their own size.
bool counts_images(std::string_view name, const Model& model) {
    if (model.image.fixed_pixels > 0 || says_sizes(name)) return false;
    return !name.empty();
}

}  // namespace

std::vector<std::string> assumed_sizes(std::string_view dataset, const std::vector<Sample>& samples,
                                       const Model& model) {
    const auto any = [&](Modality modality) {
        return std::any_of(samples.begin(), samples.end(), [&](const Sample& sample) {
            return std::any_of(sample.items.begin(), sample.items.end(),
                               [&](const Item& item) { return item.modality == modality; });
        });
    };
    std::vector<std::string> assumed = resized(samples, model);
    if (any(Modality::image) && counts_images(dataset, model))
        assumed.push_back(fmt::format("images of {} have {} x {} pixels: it gives their number alone", dataset,
                                      assumed_side, assumed_side));
    if (any(Modality::video) && model.video.sampled)
        assumed.push_back(sampled_clips(dataset, model.video));
    else if (any(Modality::video))
        assumed.push_back(
            fmt::format("clips given by seconds or frames {} and read at {:.6g} frames a second, or all of theirs if "
                        "these are fewer, the first {:.6g} s of each (video of the model)",
                        clip_sizes(dataset, model.video), model.video.fps, model.video.max_seconds));
    if (any(Modality::audio))
        assumed.push_back(
            fmt::format("audio given by seconds has {:.6g} tokens and {:.6g} positions of its encoder a second (audio "
                        "of the model)",
                        model.audio.tokens_per_second, model.audio.frames_per_second));
    return assumed;
}

std::vector<DatasetInfo> datasets() {
    std::vector<DatasetInfo> all;
    for (const auto& dataset : known_datasets()) all.push_back(dataset.info);
    all.push_back(
        {"constant-SIZES",
         "every sample alike: constant-4096 tokens of text, constant-40+1x336px with an image, constant-0+5.8s a clip, "
         "constant-0+5.8s@2fps of so many frames a second, constant-40+12s-audio with audio",
         false});
    all.push_back({"uniform-RANGES",
                   "sizes drawn evenly: uniform-100..400+1x448..1000px has 100 to 400 tokens of text and an image of "
                   "448 to 1000 pixels a side, uniform-0+2..8s@16fps a clip of 2 to 8 seconds; audio has one length",
                   false});
    return all;
}

namespace {

// As it is drawn, with no id yet.
DrawnSample sample_from(std::string_view name, const Model& model, std::uint64_t seed, std::uint64_t number) {
    if (says_sizes(name)) return said_sample(name, model, seed, number);
    const ItemRules rules(model);
    const Dataset* dataset = known_dataset(name);
    if (dataset == nullptr) return {{}, unknown_dataset(name)};
    if (auto why = why_not_readable(*dataset, model, rules)) return {{}, std::move(*why)};
    Random random(seed ^ hash(name), number);
    while (!dataset->mixture.empty()) dataset = &choose(*dataset, random);
    Sample sample = sample_of(*dataset, rules, random);
    if (model.too_long == TooLong::usual) cut(sample, model);
    sample.loss_tokens = sample.text_tokens;
    return {std::move(sample), {}};
}

}  // namespace

DrawnSample try_draw(std::string_view name, const Model& model, std::uint64_t seed, std::uint64_t number) {
    DrawnSample drawn = sample_from(name, model, seed, number);
    if (!drawn.why_not.empty()) return drawn;
    drawn.sample.id = fmt::format("{}-{}", name, number);
    if (auto why = why_not_fit(drawn.sample, model)) return {{}, std::move(*why)};
    return drawn;
}

Sample draw(std::string_view name, const Model& model, std::uint64_t seed, std::uint64_t number) {
    DrawnSample drawn = try_draw(name, model, seed, number);
    if (!drawn.why_not.empty()) fail(ErrorKind::input, "{}", drawn.why_not);
    return std::move(drawn.sample);
}

}  // namespace pipeweaver::workloads
