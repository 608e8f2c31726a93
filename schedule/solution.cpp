// Schedules, their signature, and the file format "pipeweaver-solution/1".
#include "pipeweaver/schedule/solution.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/object_text.hpp"
#include "pipeweaver/base/random.hpp"

#include <algorithm>

namespace pipeweaver::schedule {

std::string_view name_of(StopReason reason) {
    switch (reason) {
        case StopReason::optimal:
            return "optimal";
        case StopReason::no_gain:
            return "no_gain";
        case StopReason::rounds:
            return "rounds";
        case StopReason::budget:
            return "budget";
        case StopReason::stopped:
            return "stopped";
    }
    return "";
}

std::string signature(const Schedule& schedule, Duration makespan) {
    std::uint64_t hash = mix(static_cast<std::uint64_t>(makespan.count()));
    const auto add = [&](std::uint64_t value) { hash = mix(hash ^ mix(value)); };
    for (const auto& order : schedule.order) {
        add(order.size());
        for (const TaskId task : order) add(index(task));
    }
    for (const std::uint32_t mode : schedule.mode) add(mode);
    return fmt::format("{:016x}", hash);
}

namespace {

void require_text_if_present(const Json& root, std::string_view key, const std::string& needed,
                             std::string_view whose) {
    const auto member = root.find(key);
    if (!member || member->is_null() || member->text() == needed) return;
    member->fail(fmt::format("is '{}', {} '{}'", member->text(), whose, needed));
}

std::vector<std::vector<TaskId>> read_order(const Json& json, const Problem& problem) {
    if (json.size() != problem.ranks.size())
        json.fail(fmt::format("has {} lists, the problem has {} ranks", json.size(), problem.ranks.size()));
    std::vector<std::vector<TaskId>> order(json.size());
    std::vector<bool> seen(problem.tasks.size());
    for (std::size_t r = 0; r < json.size(); ++r)
        for (const Json& entry : json[r].elements()) {
            const auto task = static_cast<std::uint32_t>(entry.integer(0, static_cast<std::int64_t>(seen.size()) - 1));
            if (index(problem.tasks[task].rank) != r)
                entry.fail(
                    fmt::format("is task {} of rank {}, this is rank {}", task, index(problem.tasks[task].rank), r));
            if (seen[task]) entry.fail(fmt::format("is task {} for the second time", task));
            seen[task] = true;
            order[r].push_back(TaskId{task});
        }
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (missing != seen.end()) json.fail(fmt::format("task {} is missing", missing - seen.begin()));
    return order;
}

std::vector<std::uint32_t> read_modes(const Json& root, const Problem& problem) {
    if (problem.pairs.empty() && !root.find("mode")) return {};
    const Json json = root.at("mode");
    if (json.size() != problem.pairs.size())
        json.fail(fmt::format("has {} entries, the problem has {} pairs", json.size(), problem.pairs.size()));
    std::vector<std::uint32_t> mode;
    for (std::size_t k = 0; k < json.size(); ++k)
        mode.push_back(static_cast<std::uint32_t>(
            json[k].integer(0, static_cast<std::int64_t>(problem.pairs[k].modes.size()) - 1)));
    return mode;
}

Schedule from_document(const JsonDocument& document, const ProblemFile& file) {
    document.require_format("pipeweaver-solution", 1);
    const Json root = document.root();
    root.only_keys({"format", "problem", "problem_sha256", "order", "mode", "start_ns", "makespan_ns", "lower_bound_ns",
                    "peak_bytes", "strategy", "stop_reason", "rounds", "evaluations", "signature", "obtained"});
    const Json problem = root.at("problem");
    if (problem.text() != file.problem.name)
        problem.fail(fmt::format("is '{}', the problem is '{}'", problem.text(), file.problem.name));
    require_text_if_present(root, "problem_sha256", file.sha256, "that of the problem is");
    return {read_order(root.at("order"), file.problem), read_modes(root, file.problem)};
}

}  // namespace

Schedule read_schedule(const std::filesystem::path& path, const ProblemFile& file) {
    return from_document(JsonDocument::read_large(path), file);
}

Schedule parse_schedule(std::string name, std::string_view text, const ProblemFile& file) {
    return from_document(JsonDocument(std::move(name), text), file);
}

namespace {

template <class Values, class Number>
std::string list_text(const Values& values, Number number) {
    std::string out;
    for (const auto& value : values) out += (out.empty() ? "[" : ",") + std::to_string(number(value));
    return out.empty() ? "[]" : out + "]";
}

}  // namespace

std::string to_json(const Solution& solution) {
    std::string out =
        fmt::format("{{\"format\":\"pipeweaver-solution/1\",\"problem\":{},\n\"problem_sha256\":\"{}\",\n\"order\":[",
                    json_text(solution.problem), solution.problem_sha256);
    const auto& order = solution.schedule.order;
    for (std::size_t r = 0; r < order.size(); ++r)
        out += (r == 0 ? "\n" : ",\n") + list_text(order[r], [](TaskId task) { return index(task); });
    out += fmt::format(
        "],\n\"mode\":{},\n\"start_ns\":{},\n\"makespan_ns\":{},\"lower_bound_ns\":{},\n\"peak_bytes\":{},\n",
        list_text(solution.schedule.mode, [](auto mode) { return mode; }),
        list_text(solution.start, [](Duration time) { return time.count(); }), solution.makespan.count(),
        solution.lower_bound ? std::to_string(solution.lower_bound->count()) : "null",
        list_text(solution.peak, [](Bytes size) { return size.count; }));
    out +=
        fmt::format("\"strategy\":{},\"stop_reason\":\"{}\",\"rounds\":{},\"evaluations\":{},\"signature\":\"{}\"}}\n",
                    json_text(solution.strategy), name_of(solution.stop_reason), solution.rounds, solution.evaluations,
                    signature(solution.schedule, solution.makespan));
    return out;
}

}  // namespace pipeweaver::schedule
