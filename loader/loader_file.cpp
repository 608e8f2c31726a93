#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/loader/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace pipeweaver::loader {

namespace {

// An hour for one of anything is more than any loader takes, and lets times of a million samples be added up.
constexpr std::int64_t longest_ns = 3'600'000'000'000;
constexpr std::int64_t most_workers = 1'024, most_prefetch = 1'024, most_samples = 1'000'000, most_stages = 32;
constexpr std::int64_t most_bytes_per_s = 1'000'000'000'000'000;

// A stage's rate by its key: "clip_second", in files clip_second_ns and, of what is read, clip_second_bytes.
struct RateName {
    std::string_view unit;
    Duration Rates::*rate;
};
constexpr std::array rate_names{RateName{"pack", &Rates::pack},
                                RateName{"sample", &Rates::sample},
                                RateName{"token", &Rates::token},
                                RateName{"image", &Rates::image},
                                RateName{"megapixel", &Rates::megapixel},
                                RateName{"clip", &Rates::clip},
                                RateName{"clip_second", &Rates::clip_second},
                                RateName{"audio", &Rates::audio},
                                RateName{"audio_second", &Rates::audio_second}};

std::string key_of(const RateName& one, std::string_view measure) { return fmt::format("{}_{}", one.unit, measure); }

std::vector<std::string> stage_keys() {
    std::vector<std::string> keys{"name", "on", "source", "latency_ns", "bytes_per_s", "cached"};
    for (const char* measure : {"ns", "bytes"})
        for (const RateName& one : rate_names) keys.push_back(key_of(one, measure));
    return keys;
}

On on_of(const Json& json) {
    const std::string on = json.at("on").one_of({"storage", "core", "copy"});
    return on == "storage" ? On::storage : on == "core" ? On::core : On::copy;
}

Duration rounded(double ns, const Json& at) {
    if (ns > static_cast<double>(longest_ns)) at.fail("makes more than an hour for one, allowed is up to an hour");
    return Duration{std::llround(ns)};
}

// What is read: each file after a latency, its bytes at a speed; of what is cached nothing.
void add_reading(const Json& json, Rates& rates) {
    const double missed = 1 - (json.find("cached") ? json.at("cached").number(0, 1) : 0);
    const auto speed = json.find("bytes_per_s");
    bool any_bytes = false;
    for (const RateName& one : rate_names)
        if (const auto bytes = json.find(key_of(one, "bytes"))) {
            any_bytes = true;
            if (!speed) bytes->fail("goes with bytes_per_s, which is not given");
            const auto count = static_cast<double>(bytes->integer(0, most_bytes_per_s));
            const auto per_second = static_cast<double>(speed->integer(1, most_bytes_per_s));
            rates.*one.rate += rounded(missed * count / per_second * 1e9, *bytes);
        }
    const auto latency = json.find("latency_ns");
    if (speed && !any_bytes) speed->fail("goes with bytes to read (UNIT_bytes), which are not given");
    if (const auto cached = json.find("cached"); cached && !any_bytes && !latency)
        cached->fail("goes with latency_ns or bytes to read (UNIT_bytes), which are not given");
    if (latency) {
        const Duration each = rounded(missed * static_cast<double>(latency->integer(0, longest_ns)), *latency);
        for (Duration Rates::*file : {&Rates::image, &Rates::clip, &Rates::audio}) rates.*file += each;
    }
}

Stage stage_of(const Json& json) {
    static const std::vector<std::string> keys = stage_keys();
    json.only_keys(keys);
    Stage stage;
    stage.name = json.at("name").text();
    stage.on = on_of(json);
    if (const auto source = json.find("source")) stage.source = source->text();
    for (const RateName& one : rate_names)
        if (const auto given = json.find(key_of(one, "ns")))
            stage.rates.*one.rate = Duration{given->integer(0, longest_ns)};
    if (stage.on == On::storage) {
        add_reading(json, stage.rates);
        return stage;
    }
    for (const auto& [key, value] : json.members())
        if (key == "latency_ns" || key == "cached" || key == "bytes_per_s" || key.ends_with("_bytes"))
            value.fail("goes with stages on storage");
    return stage;
}

std::vector<Stage> stages_of(const Json& json) {
    std::vector<Stage> stages;
    for (const Json& one : json.elements()) {
        Stage stage = stage_of(one);
        for (const Stage& other : stages) {
            if (other.name == stage.name) one.fail(fmt::format("stage '{}' comes twice", stage.name));
            if (other.on == On::copy && stage.on != On::copy)
                one.fail(fmt::format("comes behind '{}', which copies: what copies comes last", other.name));
        }
        stages.push_back(std::move(stage));
    }
    if (stages.empty() || stages.size() > static_cast<std::size_t>(most_stages))
        json.fail(fmt::format("has {} stages, allowed are 1 to {}", stages.size(), most_stages));
    return stages;
}

Queue queue_of(const Json& root) {
    Queue queue;
    queue.workers = root.at("workers").integer(0, most_workers);
    if (const auto prefetch = root.find("prefetch")) queue.prefetch = prefetch->integer(1, most_prefetch);
    if (const auto cores = root.find("cores"); cores && !cores->is_null())
        queue.cores = cores->integer(1, most_workers);
    if (const auto window = root.find("window"); window && !window->is_null())
        queue.window = window->integer(1, most_samples);
    return queue;
}

}  // namespace

std::string_view name_of(On on) { return on == On::storage ? "storage" : on == On::core ? "core" : "copy"; }

Loader parse_loader(const JsonDocument& document) {
    document.require_format("pipeweaver-loader", 1);
    const Json root = document.root();
    root.only_keys({"format", "name", "workers", "prefetch", "cores", "window", "takes", "together", "stages"});
    Loader loader;
    loader.name = root.find("name") ? root.at("name").text() : document.name();
    loader.queue = queue_of(root);
    if (const auto takes = root.find("takes"))
        loader.taking.whole_step = takes->one_of({"microbatch", "step"}) == "step";
    if (const auto together = root.find("together"))
        loader.taking.microbatches_together = together->one_of({"microbatch", "step"}) == "microbatch";
    loader.stages = stages_of(root.at("stages"));
    return loader;
}

Loader find_loader(const std::string& text) {
    if (names_a_document(text) || is_a_document(text)) return parse_loader(JsonDocument::given("--loader", text));
    std::vector<std::string> names;
    for (const Loader& one : loaders()) {
        if (one.name == text) return one;
        names.push_back(one.name);
    }
    fail(ErrorKind::input, "--loader: {}", unknown("loader", text, names));
}

}  // namespace pipeweaver::loader
