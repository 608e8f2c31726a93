// Batch files: one sample a line.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "workloads/fields.hpp"
#include "workloads/items.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>

namespace pipeweaver::workloads {

namespace {

// In which other forms people keep what they train on.
using Row = std::pair<std::string_view, std::string_view>;

constexpr std::array<Row, 5> by_ending{{{".parquet", "a Parquet table"},
                                        {".arrow", "an Arrow table"},
                                        {".tar", "a shard"},
                                        {".tar.gz", "a shard"},
                                        {".tgz", "a shard"}}};

// The first key that a line has decides.
constexpr std::array<Row, 8> by_key{{{"messages", "a chat (key 'messages')"},
                                     {"conversations", "a conversation (key 'conversations')"},
                                     {"instruction", "an instruction with its answer (key 'instruction')"},
                                     {"query", "a query with its response (key 'query')"},
                                     {"file_name", "a caption of a file (key 'file_name')"},
                                     {"caption", "a caption (key 'caption')"},
                                     {"text", "a text (key 'text')"},
                                     {"image", "an annotation of a file (key 'image')"}}};

// {"my-set":{"annotation":...}}, {"my-set":{"file_name":...}}.
bool lists_data_sets(const Json& line) {
    const auto members = line.members();
    return !members.empty() && std::all_of(members.begin(), members.end(), [](const auto& member) {
        const Json& set = member.second;
        return set.is_object() && (set.find("annotation") || set.find("file_name") || set.find("hf_hub_url"));
    });
}

// What a file of this name holds that is no text, in words; "" where it may be a batch file.
std::string_view form_of_name(std::string_view name) {
    const auto* const row =
        std::find_if(by_ending.begin(), by_ending.end(), [&](const Row& one) { return name.ends_with(one.first); });
    return row == by_ending.end() ? std::string_view() : row->second;
}

// The form of a chat, conversation, caption or list of data sets, by the keys of a line; "" where it has none of them.
std::string_view form_of_line(const Json& line) {
    if (line.is_array()) return line.size() > 0 ? "a list" : std::string_view();
    if (!line.is_object() || line.find("text_tokens")) return {};
    const auto* const row =
        std::find_if(by_key.begin(), by_key.end(), [&](const Row& one) { return line.find(one.first).has_value(); });
    if (row != by_key.end()) return row->second;
    return lists_data_sets(line) ? "a list of data sets" : std::string_view();
}

// `place` is of `form`; names the command that makes a batch file of `file`.
[[noreturn]] void refuse_form(std::string_view place, std::string_view form, const std::string& file) {
    fail(ErrorKind::input,
         "{}: is {}, no sample of a batch file; `python3 -m pipeweaver.data.convert {} --out batch.jsonl` makes one of "
         "it",
         place, form, file);
}

constexpr std::int64_t most_frames = 100'000'000;
constexpr double least_seconds = 1e-3;
constexpr double most_seconds = 1e6;
constexpr double most_fps = 1e4;

bool is_target(const Json& json) {
    const auto role = json.find("role");
    return role && role->one_of({"input", "target"}) == "target";
}

// An item whose tokens and patches are given instead of its size.
Item given_item(const Json& json, Modality modality) {
    if (modality == Modality::image)
        json.only_keys({"tokens", "patches", "role"});
    else
        json.only_keys({"tokens", "patches", "seconds", "spans", "role"});
    Item item{modality, json.at("tokens").integer(0, most_tokens), json.at("patches").integer(0, most_tokens),
              number_or(json, "seconds", 0, least_seconds, most_seconds), is_target(json)};
    if (item.tokens == 0 && item.patches == 0) json.fail("has neither tokens nor patches");
    item.spans = integer_or(json, "spans", 1, 1, std::max<std::int64_t>(1, item.patches));
    return item;
}

Item image_item(const Json& json, const ItemRules& rules) {
    json.only_keys({"width", "height", "tokens", "patches", "role"});
    return rules.image(json.at("width").integer(1, most_pixels), json.at("height").integer(1, most_pixels),
                       is_target(json));
}

// Where the model's rule has no size that clips are scaled to, each must say its own.
void require_size(const Json& json, const ItemRules& rules) {
    if (!rules.needs_clip_sizes() || (json.find("width") && json.find("height"))) return;
    json.fail(
        fmt::format("lacks width or height, and the video rule of the model has neither: allowed are both, 1 to {} "
                    "pixels, or tokens and patches in place of the size",
                    most_pixels));
}

// Clips may be scaled to the model's size; their own must make sense all the same.
Item video_item(const Json& json, const ItemRules& rules) {
    json.only_keys({"frames", "seconds", "width", "height", "fps", "role"});
    require_size(json, rules);
    Clip clip;
    clip.width = integer_or(json, "width", 0, 1, most_pixels);
    clip.height = integer_or(json, "height", 0, 1, most_pixels);
    const auto seconds = json.find("seconds"), rate = json.find("fps");
    if (seconds && json.find("frames")) json.fail("has frames and seconds, allowed is one of the two");
    if (rate) clip.fps = rate->number(1e-3, most_fps);
    if (seconds) {
        clip.seconds = seconds->number(least_seconds, most_seconds);
    } else {
        const auto frames = static_cast<double>(json.at("frames").integer(1, most_frames));
        clip.seconds = frames / json.at("fps").number(1e-3, most_fps);
    }
    Item item = rules.video(clip, is_target(json));
    if (const std::int64_t positions = std::max(item.tokens, item.patches); positions > most_tokens)
        json.fail(fmt::format("has {} latent patches, allowed are up to {}", positions, most_tokens));
    return item;
}

Item audio_item(const Json& json, const ItemRules& rules) {
    json.only_keys({"seconds", "role"});
    return rules.audio(json.at("seconds").number(least_seconds, most_seconds), is_target(json));
}

Item parse_item(const Json& json, Modality modality, const ItemRules& rules) {
    if (!rules.takes(modality, is_target(json))) json.fail(rules.refusal(modality, is_target(json)));
    if (json.find("tokens") || json.find("patches")) return given_item(json, modality);
    if (modality == Modality::image) return image_item(json, rules);
    return modality == Modality::video ? video_item(json, rules) : audio_item(json, rules);
}

Sample parse_sample(const Json& json, const ItemRules& rules) {
    json.only_keys({"id", "text_tokens", "loss_tokens", "deferred", "images", "videos", "audio"});
    Sample sample;
    sample.id = json.at("id").text();
    if (sample.id.empty()) json.at("id").fail("is empty");
    const std::int64_t text = json.at("text_tokens").integer(0, most_tokens);
    const std::int64_t loss = integer_or(json, "loss_tokens", text, 0, most_tokens);
    if (rules.takes_text()) {
        sample.text_tokens = text;
        sample.loss_tokens = loss;
    }
    sample.deferred = integer_or(json, "deferred", 0, 0, most_steps_deferred);
    const std::pair<std::string_view, Modality> lists[] = {
        {"images", Modality::image}, {"videos", Modality::video}, {"audio", Modality::audio}};
    for (const auto& [key, modality] : lists) {
        const auto list = json.find(key);
        if (!list) continue;
        sample.items.reserve(sample.items.size() + list->size());
        for (const Json& item : list->elements()) sample.items.push_back(parse_item(item, modality, rules));
    }
    if (text == 0 && sample.items.empty()) json.fail("the sample has neither text nor items");
    return sample;
}

void check_ids(const std::string& name, const std::vector<Sample>& samples) {
    std::vector<std::size_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const int compared = samples[a].id.compare(samples[b].id);
        return compared != 0 ? compared < 0 : a < b;
    });
    // The first line that repeats an earlier one. Every line is a sample: sample i is on line i + 1.
    std::size_t first = samples.size(), second = samples.size();
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (samples[order[i - 1]].id != samples[order[i]].id || order[i] >= second) continue;
        first = order[i - 1];
        second = order[i];
    }
    if (second < samples.size())
        fail(ErrorKind::input, "{}:{}: id: '{}' is that of line {} already", name, second + 1, samples[second].id,
             first + 1);
}

nlohmann::ordered_json item_json(const Item& item) {
    nlohmann::ordered_json json{{"tokens", item.tokens}, {"patches", item.patches}};
    if (item.seconds > 0) json["seconds"] = item.seconds;
    if (item.spans > 1) json["spans"] = item.spans;
    if (item.target) json["role"] = "target";
    return json;
}

}  // namespace

std::int64_t Sample::tokens() const {
    return std::accumulate(items.begin(), items.end(), text_tokens,
                           [](std::int64_t sum, const Item& item) { return sum + item.tokens; });
}

namespace {

[[noreturn]] void too_many(const std::string& name, std::size_t most) {
    fail(
        ErrorKind::limit,
        "{}:{}: is one sample too many: a batch file is the batch of one step, of at most {} samples; write a file for "
        "each step",
        name, most + 1, most);
}

// Lines of a file that can be read twice; 0 for a pipe.
std::size_t count_lines(const std::filesystem::path& path, std::size_t most) {
    if (!std::filesystem::is_regular_file(path)) return 0;
    LineReader lines(path);
    std::string line;
    while (lines.next(line))
        if (lines.number() > most) too_many(path.string(), most);
    return lines.number();
}

// `next` puts a line into its argument, or returns false at the end.
template <class Next>
void read_samples(const std::string& name, Next next, const Model& model, std::size_t most,
                  std::vector<Sample>& samples) {
    const ItemRules rules(model);
    std::string line;
    while (next(line)) {
        if (samples.size() == most) too_many(name, most);
        const std::string place = fmt::format("{}:{}", name, samples.size() + 1);  // every line is a sample
        if (line.find_first_not_of(" \t") == std::string::npos) fail(ErrorKind::input, "{}: the line is empty", place);
        const JsonDocument document(place, line);
        if (const auto form = form_of_line(document.root()); !form.empty()) refuse_form(place, form, name);
        samples.push_back(parse_sample(document.root(), rules));
        if (const auto why = why_not_fit(samples.back(), model)) fail(ErrorKind::input, "{}: {}", place, *why);
    }
    if (samples.empty()) fail(ErrorKind::input, "{}: holds no sample", name);
    check_ids(name, samples);
}

}  // namespace

std::vector<Sample> read_batch(const std::filesystem::path& path, const Model& model, std::size_t most_samples) {
    std::error_code none;
    if (std::filesystem::is_directory(path, none))
        fail(ErrorKind::io,
             "{0}: is a folder, a file is needed; `python3 -m pipeweaver.data.convert {0} --out batch.jsonl` "
             "writes one",
             path.string());
    if (const auto form = form_of_name(path.string()); !form.empty()) refuse_form(path.string(), form, path.string());
    std::vector<Sample> samples;
    samples.reserve(count_lines(path, most_samples));
    LineReader lines(path);
    read_samples(
        path.string(), [&](std::string& line) { return lines.next(line); }, model, most_samples, samples);
    return samples;
}

std::vector<Sample> parse_batch(const std::string& name, std::string_view text, const Model& model) {
    std::vector<Sample> samples;
    const auto next = [&](std::string& line) {
        if (text.empty()) return false;
        const std::size_t end = std::min(text.find('\n'), text.size());
        line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        return true;
    };
    read_samples(name, next, model, most_batch_samples, samples);
    return samples;
}

namespace {

// Of the backbone's sequence, or what its cross attention reads; of an item that is made, its positions.
std::int64_t positions_of(const Item& item, const Model& model) {
    if (item.tokens > 0 || item.target) return item.tokens > 0 ? item.tokens : item.patches;
    for (const ModelEdge& edge : model.edges)
        if (edge.to == model.backbone() && takes(model.modules[edge.from], item))
            return item.patches / edge.token_reduction;
    return item.patches;
}

}  // namespace

std::string tokens_by_modality(const std::vector<Sample>& samples, const Model& model) {
    std::array<std::int64_t, 4> tokens{};
    for (const Sample& sample : samples) {
        tokens[static_cast<std::size_t>(Modality::text)] += sample.text_tokens;
        for (const Item& item : sample.items)
            tokens[static_cast<std::size_t>(item.modality)] += positions_of(item, model);
    }
    std::string text;
    for (const Modality modality : {Modality::text, Modality::image, Modality::video, Modality::audio})
        if (const std::int64_t own = tokens[static_cast<std::size_t>(modality)]; own > 0)
            text += fmt::format("{}{}{} of {}", text.empty() ? "" : ", ", own, text.empty() ? " tokens" : "",
                                name_of(modality));
    return text;
}

std::string sizes_text(const std::vector<Sample>& samples, const Model& model) {
    const std::string tokens = tokens_by_modality(samples, model);
    return parameters_by_module(model) + (tokens.empty() ? "" : "; ") + tokens;
}

std::string to_jsonl(const std::vector<Sample>& samples) {
    std::string text;
    for (const auto& sample : samples) {
        nlohmann::ordered_json json{{"id", sample.id}, {"text_tokens", sample.text_tokens}};
        if (sample.loss_tokens != sample.text_tokens) json["loss_tokens"] = sample.loss_tokens;
        if (sample.deferred > 0) json["deferred"] = sample.deferred;
        for (const auto& item : sample.items) {
            const char* list = item.modality == Modality::image   ? "images"
                               : item.modality == Modality::video ? "videos"
                                                                  : "audio";
            json[list].push_back(item_json(item));
        }
        text += json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    }
    return text;
}

}  // namespace pipeweaver::workloads
