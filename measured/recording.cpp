// One rank's file: timings of the executor, or a Kineto trace.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/costdb/named_ranges.hpp"
#include "pipeweaver/measured/run.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>

namespace pipeweaver::measured {

namespace {

constexpr std::string_view prefix = "PP:";
constexpr std::string_view format = "pipeweaver-timings";

Span span_of(const Json& entry) {
    const Span time{Duration{entry.at("start_ns").integer()}, Duration{entry.at("end_ns").integer()}};
    if (time.end < time.start) entry.at("end_ns").fail("is before start_ns");
    return time;
}

void add_action(const Json& entry, RecordedStep& step) {
    const std::string op = entry.at("op").one_of({"F", "B", "I", "W", "send", "wait"});
    if (op.size() > 1) {
        entry.only_keys({"op", "tensor", "start_ns", "end_ns"});
        const Span time = span_of(entry);
        const bool arrived = op == "wait";
        step.messages.push_back({arrived, entry.at("tensor").integer(), arrived ? time.end : time.start});
        return;
    }
    entry.only_keys({"op", "stage", "microbatch", "item", "start_ns", "end_ns"});
    step.passes.push_back({op.front(), entry.at("stage").integer(), entry.at("microbatch").integer(),
                           entry.at("item").integer(), span_of(entry)});
}

Recording timings(const std::filesystem::path& path) {
    const auto document = JsonDocument::read(path);
    document.require_format(format, 1);
    const Json root = document.root();
    root.only_keys({"format", "problem", "replica", "rank", "ranks", "steps"});
    Recording recording{
        path.string(), root.at("rank").integer(), root.at("replica").integer(), root.at("problem").text(), {}};
    recording.ranks = root.at("ranks").integer(1);
    for (const Json& step : root.at("steps").elements()) {
        step.only_keys({"actions"});
        auto& taken = recording.steps.emplace_back();
        for (const Json& action : step.at("actions").elements()) add_action(action, taken);
    }
    return recording;
}

bool take_number(std::string_view& text, std::int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

// "PP:0F3", "PP:0F3.1"; nothing for what is no pass: PP:0SEND_F3, PP:0UNSHARD.
std::optional<RecordedPass> pass_named(std::string_view name) {
    RecordedPass pass;
    name.remove_prefix(prefix.size());
    if (!take_number(name, pass.stage) || name.empty()) return std::nullopt;
    pass.kind = name.front();
    name.remove_prefix(1);
    if (std::string_view("FBIW").find(pass.kind) == std::string_view::npos) return std::nullopt;
    if (!take_number(name, pass.microbatch)) return std::nullopt;
    if (name.starts_with('.')) {
        name.remove_prefix(1);
        if (!take_number(name, pass.item)) return std::nullopt;
    }
    return name.empty() ? std::optional(pass) : std::nullopt;
}

// The n-th range of a name is of the n-th step in the trace.
Recording trace(const std::filesystem::path& path) {
    const auto found = costdb::read_named_ranges(path, prefix);
    Recording recording{path.string(), found.rank, {}, {}, {}};
    std::map<std::string, std::size_t> seen;
    for (const costdb::NamedRange& range : found.ranges) {
        auto pass = pass_named(range.name);
        if (!pass) continue;
        pass->time = {Duration{range.start_ns}, Duration{range.end_ns}};
        const std::size_t step = seen[range.name]++;
        if (step >= recording.steps.size()) recording.steps.resize(step + 1);
        recording.steps[step].passes.push_back(*pass);
    }
    if (recording.steps.empty())
        fail(ErrorKind::input,
             "{}: has no range that is named as a pass of a pipeline, like PP:0F3: it is no trace of a pipeline's "
             "step, or was recorded without its annotations",
             path.string());
    return recording;
}

// Whether the beginning names the format of timings.
bool are_timings(const std::filesystem::path& path) {
    ByteReader reader(path);
    std::array<char, 512> front{};
    const std::size_t size = reader.read(front);
    return std::string_view(front.data(), size).find(format) != std::string_view::npos;
}

}  // namespace

Recording read_recording(const std::filesystem::path& path) { return are_timings(path) ? timings(path) : trace(path); }

}  // namespace pipeweaver::measured
