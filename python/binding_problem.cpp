// Problems and solutions: files, texts and arrays.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/schedule/stage_table.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "python/binding.hpp"

#include <nlohmann/json.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace pipeweaver::python {

namespace {

using Shared = std::shared_ptr<const Problem>;

std::shared_ptr<Problem> parse(const std::string& name, const std::string& text) {
    return std::make_shared<Problem>(Problem{schedule::parse_problem(name, text)});
}

std::shared_ptr<Problem> read(const std::string& path) {
    return std::make_shared<Problem>(Problem{schedule::read_problem(path)});
}

// `csv`: the table in place of the file `name`. `options`: a JSON object with microbatches, capacity and link.
std::shared_ptr<Problem> from_stages(const std::string& name, const std::optional<std::string>& csv,
                                     const std::string& options, bool for_torch) {
    schedule::StageOptions asked;
    std::optional<std::int64_t> microbatches;
    OptionTable table;
    table.integer("microbatches", microbatches, 1, 1'000'000, {});
    table.parsed("capacity", {}, {}, [&](const std::string& text) { asked.capacity = schedule::parse_capacity(text); });
    table.parsed("link", {}, {}, [&](const std::string& text) { asked.link = parse_bandwidth(text); });
    const JsonDocument document("from_stages", options);
    table.configure(document.root());
    if (!microbatches) fail(ErrorKind::input, "from_stages: missing microbatches: their number");
    asked.microbatches = *microbatches;
    if (for_torch) asked = planner::stage_options(asked, planner::target("torch-csv"));
    const auto stages = csv ? schedule::parse_stage_table(name, *csv) : schedule::read_stage_table(name);
    auto problem = schedule::stage_problem(stages, asked);
    std::string sha256 = fingerprint(problem);
    return std::make_shared<Problem>(Problem{{std::move(problem), std::move(sha256)}});
}

// A number of each task, or of each rank.
template <class Of>
auto numbers(Of of) {
    return [of](const Problem& problem) {
        std::vector<std::int64_t> values;
        values.reserve(problem.file.problem.tasks.size());
        for (const auto& task : problem.file.problem.tasks) values.push_back(of(task));
        return array(std::move(values));
    };
}

std::string kinds(const Problem& problem) {
    std::string letters;
    for (const auto& task : problem.file.problem.tasks) letters += letter(task.kind);
    return letters;
}

Array<std::int64_t> edges(const Problem& problem) {
    std::vector<std::int64_t> values;
    for (const auto& edge : problem.file.problem.edges)
        values.insert(values.end(), {static_cast<std::int64_t>(index(edge.from)),
                                     static_cast<std::int64_t>(index(edge.to)), edge.lag.count()});
    return array(std::move(values), {problem.file.problem.edges.size(), 3});
}

std::vector<Array<std::int64_t>> order(const Solution& solution) {
    std::vector<Array<std::int64_t>> ranks;
    for (const auto& rank : solution.content.schedule.order) {
        std::vector<std::int64_t> tasks;
        tasks.reserve(rank.size());
        for (const TaskId task : rank) tasks.push_back(static_cast<std::int64_t>(index(task)));
        ranks.push_back(array(std::move(tasks)));
    }
    return ranks;
}

Array<std::int64_t> starts(const Solution& solution) {
    std::vector<std::int64_t> values;
    for (const Duration start : solution.content.start) values.push_back(start.count());
    return array(std::move(values));
}

// As the schedule's modes have them.
Array<std::int64_t> durations(const Solution& solution) {
    std::vector<std::int64_t> values;
    const schedule::Replayer replayer(solution.problem->file.problem);
    for (const auto& cost : replayer.costs(solution.content.schedule.mode)) values.push_back(cost.duration.count());
    return array(std::move(values));
}

Array<std::int64_t> peaks(const Solution& solution) {
    std::vector<std::int64_t> values;
    for (const Bytes peak : solution.content.peak) values.push_back(peak.count);
    return array(std::move(values));
}

Array<std::int64_t> modes(const Solution& solution) {
    const auto& mode = solution.content.schedule.mode;
    return array(std::vector<std::int64_t>(mode.begin(), mode.end()));
}

// A solution's schedule, its times and memory worked out again.
Solution replayed(const Shared& problem, const std::string& name, const std::string& text) {
    const auto schedule = schedule::parse_schedule(name, text, problem->file);
    const schedule::Replayer replayer(problem->file.problem);
    const auto replay = replayer.replay(schedule);
    if (replay.outcome != schedule::Outcome::completed)
        fail(ErrorKind::limit, "{}: {}", name, schedule::why_it_fails(problem->file.problem, replay));
    schedule::Solution content;
    content.problem = problem->file.problem.name;
    content.problem_sha256 = problem->file.sha256;
    content.schedule = schedule;
    content.start = replay.start;
    content.makespan = replay.makespan;
    content.lower_bound = search::best_bound(replayer).value;
    content.peak = replay.peak;
    content.strategy = "replay";
    if (content.makespan == *content.lower_bound) content.stop_reason = schedule::StopReason::optimal;
    return {problem, std::move(content)};
}

double gap(const Solution& solution) {
    return schedule::relative_gap(solution.content.makespan, *solution.content.lower_bound);
}

}  // namespace

void bind_problem(nb::module_& module) {
    using schedule::Task;
    constexpr auto own = nb::rv_policy::move;  // arrays own their numbers
    nb::class_<Problem>(module, "Problem")
        .def_static("parse", &parse, unlocked())
        .def_static("read", &read, unlocked())
        .def_static("from_stages", &from_stages, unlocked(), nb::arg("name"), nb::arg("csv").none(), nb::arg("options"),
                    nb::arg("for_torch"))
        .def_prop_ro("name", [](const Problem& problem) { return problem.file.problem.name; })
        .def_prop_ro("ranks", [](const Problem& problem) { return problem.file.problem.ranks.size(); })
        .def("to_json", [](const Problem& problem) { return to_json(problem.file.problem); })
        .def_prop_ro("rank", numbers([](const Task& task) { return static_cast<std::int64_t>(index(task.rank)); }), own)
        .def_prop_ro("duration_ns", numbers([](const Task& task) { return task.duration.count(); }), own)
        .def_prop_ro("acquire_bytes", numbers([](const Task& task) { return task.acquire.count; }), own)
        .def_prop_ro("release_bytes", numbers([](const Task& task) { return task.release.count; }), own)
        .def_prop_ro("kinds", &kinds)
        .def_prop_ro("edges", &edges, own);
    nb::class_<Solution>(module, "Solution")
        .def("to_json", [](const Solution& solution) { return to_json(solution.content); })
        .def_prop_ro("makespan_ns", [](const Solution& solution) { return solution.content.makespan.count(); })
        .def_prop_ro("lower_bound_ns", [](const Solution& solution) { return solution.content.lower_bound->count(); })
        .def_prop_ro("gap", &gap)
        .def_prop_ro("order", &order, own)
        .def_prop_ro("start_ns", &starts, own)
        .def_prop_ro("duration_ns", &durations, own)
        .def_prop_ro("peak_bytes", &peaks, own)
        .def_prop_ro("mode", &modes, own);
    module.def("read_text", [](const std::string& path) { return read_file(path); });
    module.def("read_document",
               [](const std::string& path) { return JsonDocument::read_large(path).root().raw().dump(); });
    module.def("names_a_document", [](const std::string& text) { return names_a_document(text); });
    module.def("replay", &replayed, unlocked());
}

}  // namespace pipeweaver::python
