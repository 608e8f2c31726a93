// The file format "pipeweaver-problem/1".
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/object_text.hpp"
#include "pipeweaver/schedule/problem.hpp"

#include <fmt/format.h>

#include <iterator>
#include <type_traits>

namespace pipeweaver::schedule {

namespace {

constexpr std::int64_t most_index = 0xfffffffe;

Bytes bytes_at(const Json& object, std::string_view key) { return {object.at(key).integer()}; }

Bytes bytes_or_zero(const Json& object, std::string_view key) {
    const auto member = object.find(key);
    return member ? Bytes{member->integer()} : Bytes{};
}

template <class Id>
Id id_of(const Json& value) {
    return Id{static_cast<std::uint32_t>(value.integer(0, most_index))};
}

std::optional<std::int64_t> optional_integer(const Json& object, std::string_view key) {
    const auto member = object.find(key);
    return member ? std::optional(member->integer()) : std::nullopt;
}

Rank read_rank(const Json& json) {
    json.only_keys({"capacity_bytes", "base_bytes", "tail_ns"});
    Rank rank;
    const Json capacity = json.at("capacity_bytes");
    if (!capacity.is_null()) rank.capacity = Bytes{capacity.integer()};
    rank.base = bytes_at(json, "base_bytes");
    rank.tail = Duration{optional_integer(json, "tail_ns").value_or(0)};
    return rank;
}

Stage read_stage(const Json& json) {
    json.only_keys({"stage", "rank", "parts"});
    Stage stage{json.at("stage").integer(), id_of<RankId>(json.at("rank")), {}};
    for (const Json& part : json.at("parts").elements()) {
        part.only_keys({"module", "first_layer", "layers"});
        stage.parts.push_back(
            {part.at("module").text(), optional_integer(part, "first_layer"), optional_integer(part, "layers")});
    }
    return stage;
}

TaskKind kind_of(const Json& json) {
    return static_cast<TaskKind>(std::string_view("FBIWX").find(json.one_of({"F", "B", "I", "W", "X"})));
}

Task read_task(const Json& json, std::size_t place) {
    json.only_keys({"id", "rank", "kind", "duration_ns", "acquire_bytes", "release_bytes", "label", "stage",
                    "microbatch", "item", "module"});
    const Json id = json.at("id");
    if (id.integer() != static_cast<std::int64_t>(place))
        id.fail(fmt::format("is {}, needed is the task's index {}", id.integer(), place));
    Task task;
    task.rank = id_of<RankId>(json.at("rank"));
    task.kind = kind_of(json.at("kind"));
    task.duration = Duration{json.at("duration_ns").integer(1)};
    task.acquire = bytes_at(json, "acquire_bytes");
    task.release = bytes_at(json, "release_bytes");
    task.label = json.at("label").text();
    task.stage = optional_integer(json, "stage");
    task.microbatch = optional_integer(json, "microbatch");
    task.item = optional_integer(json, "item");
    if (const auto module = json.find("module")) task.module = module->text();
    return task;
}

Edge read_edge(const Json& json) {
    if (json.size() != 3) json.fail("has another form than [from, to, lag_ns]");
    return {id_of<TaskId>(json[0]), id_of<TaskId>(json[1]), Duration{json[2].integer()}};
}

Mode read_mode(const Json& json, bool split) {
    json.only_keys({"forward_ns", "backward_ns", "weight_ns", "held_bytes", "forward_transient_bytes",
                    "transient_bytes", "kept_bytes"});
    Mode mode;
    mode.forward = Duration{json.at("forward_ns").integer(1)};
    mode.backward = Duration{json.at("backward_ns").integer(1)};
    mode.held = bytes_at(json, "held_bytes");
    mode.forward_transient = bytes_or_zero(json, "forward_transient_bytes");
    mode.transient = bytes_at(json, "transient_bytes");
    if (split) {
        mode.weight = Duration{json.at("weight_ns").integer(1)};
        mode.kept = bytes_at(json, "kept_bytes");
    }
    return mode;
}

Pair read_pair(const Json& json) {
    json.only_keys({"forward", "backward", "weight", "modes"});
    Pair pair;
    pair.forward = id_of<TaskId>(json.at("forward"));
    pair.backward = id_of<TaskId>(json.at("backward"));
    if (const auto weight = json.find("weight"); weight && !weight->is_null()) pair.weight = id_of<TaskId>(*weight);
    for (const Json& mode : json.at("modes").elements()) pair.modes.push_back(read_mode(mode, pair.weight.has_value()));
    return pair;
}

ProblemFile from_document(const JsonDocument& document) {
    const Json root = document.root();
    document.require_format("pipeweaver-problem", 1);
    root.only_keys({"format", "name", "source", "ranks", "stages", "tasks", "edges", "pairs"});
    ProblemFile file;
    Problem& problem = file.problem;
    problem.name = root.at("name").text();
    if (const auto source = root.find("source")) problem.source = source->text();
    for (const Json& rank : root.at("ranks").elements()) problem.ranks.push_back(read_rank(rank));
    if (const auto stages = root.find("stages"))
        for (const Json& stage : stages->elements()) problem.stages.push_back(read_stage(stage));
    const auto tasks = root.at("tasks").elements();
    for (std::size_t i = 0; i < tasks.size(); ++i) problem.tasks.push_back(read_task(tasks[i], i));
    for (const Json& edge : root.at("edges").elements()) problem.edges.push_back(read_edge(edge));
    if (const auto pairs = root.find("pairs"))
        for (const Json& pair : pairs->elements()) problem.pairs.push_back(read_pair(pair));
    try {
        validate(problem);
    } catch (const Error& error) {
        throw error.in(document.name());
    }
    file.sha256 = sha256(document.canonical());
    return file;
}

// What follows says once how a problem is written: in files with the keys in the order given here, in the canonical
// bytes with sorted ones.

using Append = void (ObjectText::*)(std::string&) const;
constexpr Append in_file = &ObjectText::append_to, canonical = &ObjectText::append_sorted_to;

// Nested objects have a text of their own.
template <class T, class Describe>
std::string list_text(const std::vector<T>& all, Append append, Describe describe) {
    std::string out = "[";
    ObjectText json;
    for (const T& one : all) {
        if (&one != all.data()) out += ',';
        json.clear();
        describe(json, one);
        (json.*append)(out);
    }
    return out + "]";
}

void describe(ObjectText& json, const Rank& rank, Append) {
    if (rank.capacity)
        json.integer("capacity_bytes", rank.capacity->count);
    else
        json.raw("capacity_bytes", "null");
    json.integer("base_bytes", rank.base.count);
    if (rank.tail.count() > 0) json.integer("tail_ns", rank.tail.count());
}

void describe(ObjectText& json, const Stage& stage, Append append) {
    json.integer("stage", stage.stage).integer("rank", index(stage.rank));
    json.raw("parts", list_text(stage.parts, append, [](ObjectText& entry, const StagePart& part) {
                 entry.text("module", part.module);
                 if (part.first_layer) entry.integer("first_layer", *part.first_layer);
                 if (part.layers) entry.integer("layers", *part.layers);
             }));
}

void describe(ObjectText& json, const Task& task, std::size_t id) {
    const char kind = letter(task.kind);
    json.integer("id", id).integer("rank", index(task.rank)).text("kind", {&kind, 1});
    json.integer("duration_ns", task.duration.count()).integer("acquire_bytes", task.acquire.count);
    json.integer("release_bytes", task.release.count).text("label", task.label);
    if (task.stage) json.integer("stage", *task.stage);
    if (task.microbatch) json.integer("microbatch", *task.microbatch);
    if (task.item) json.integer("item", *task.item);
    if (!task.module.empty()) json.text("module", task.module);
}

void describe(ObjectText& json, const Mode& mode, bool split) {
    json.integer("forward_ns", mode.forward.count()).integer("backward_ns", mode.backward.count());
    if (split) json.integer("weight_ns", mode.weight.count());
    json.integer("held_bytes", mode.held.count);
    if (mode.forward_transient.count > 0) json.integer("forward_transient_bytes", mode.forward_transient.count);
    json.integer("transient_bytes", mode.transient.count);
    if (split) json.integer("kept_bytes", mode.kept.count);
}

void describe(ObjectText& json, const Pair& pair, Append append) {
    json.integer("forward", index(pair.forward)).integer("backward", index(pair.backward));
    if (pair.weight) json.integer("weight", index(*pair.weight));
    json.raw("modes", list_text(pair.modes, append, [&](ObjectText& entry, const Mode& mode) {
                 describe(entry, mode, pair.weight.has_value());
             }));
}

template <class T>
void append_entry(std::string& out, const T& one, std::size_t number, ObjectText& json, Append append) {
    if constexpr (std::is_same_v<T, Edge>) {
        fmt::format_to(std::back_inserter(out), "[{},{},{}]", index(one.from), index(one.to), one.lag.count());
    } else {
        json.clear();
        if constexpr (std::is_same_v<T, Task>)
            describe(json, one, number);
        else
            describe(json, one, append);
        (json.*append)(out);
    }
}

template <class T>
void append_entries(std::string& out, const std::vector<T>& all, std::string_view between, Append append) {
    ObjectText json;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0) out += between;
        append_entry(out, all[i], i, json, append);
    }
}

// A list with one entry a line: readable, and a change is one line of a diff.
template <class T>
void append_list(std::string& out, std::string_view key, const std::vector<T>& all) {
    fmt::format_to(std::back_inserter(out), ",\n\"{}\":[", key);
    if (!all.empty()) out += '\n';
    append_entries(out, all, ",\n", in_file);
    out += "]";
}

template <class T>
std::string canonical_list(std::string_view key, const std::vector<T>& all) {
    std::string out = fmt::format("\"{}\":[", key);
    append_entries(out, all, ",", canonical);
    out += "],";
    return out;
}

}  // namespace

ProblemFile read_problem(const std::filesystem::path& path) { return from_document(JsonDocument::read_large(path)); }

ProblemFile parse_problem(std::string name, std::string_view text) {
    return from_document(JsonDocument(std::move(name), text));
}

std::string to_json(const Problem& problem) {
    std::string out = fmt::format("{{\"format\":\"pipeweaver-problem/1\",\"name\":{},\"source\":{}",
                                  json_text(problem.name), json_text(problem.source));
    append_list(out, "ranks", problem.ranks);
    if (!problem.stages.empty()) append_list(out, "stages", problem.stages);
    append_list(out, "tasks", problem.tasks);
    append_list(out, "edges", problem.edges);
    if (!problem.pairs.empty()) append_list(out, "pairs", problem.pairs);
    out += "}\n";
    return out;
}

std::string fingerprint(const Problem& problem) {
    Sha256 digest;
    digest.add("{");
    digest.add(canonical_list("edges", problem.edges));
    digest.add(fmt::format("\"format\":\"pipeweaver-problem/1\",\"name\":{},", json_text(problem.name)));
    if (!problem.pairs.empty()) digest.add(canonical_list("pairs", problem.pairs));
    digest.add(canonical_list("ranks", problem.ranks));
    digest.add(fmt::format("\"source\":{},", json_text(problem.source)));
    if (!problem.stages.empty()) digest.add(canonical_list("stages", problem.stages));
    const std::string tasks = canonical_list("tasks", problem.tasks);
    digest.add(std::string_view(tasks).substr(0, tasks.size() - 1));
    digest.add("}");
    return digest.hex();
}

}  // namespace pipeweaver::schedule
