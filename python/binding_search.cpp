// solve(): one search of a problem.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/planner/stage_plan.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/search/carry_over.hpp"
#include "python/binding.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace pipeweaver::python {

namespace {

// What solve() is asked for besides the limits.
struct SolveOptions {
    std::string strategy, target, then;

    explicit SolveOptions(OptionTable& options) {
        options.text("strategy", strategy, "STRATEGY", {});
        options.choice("target", target, planner::target_options(planner::has_own_rules), {});
        options.choice("then", then, {"memory"}, {});
    }
};

std::vector<schedule::Schedule> starts_from(const Solution* warm, const Problem& problem,
                                            const schedule::Replayer& replayer) {
    if (warm == nullptr) return {};
    if (warm->problem->file.sha256 == problem.file.sha256) return {warm->content.schedule};
    return search::carry_over(warm->problem->file.problem, warm->content.schedule, replayer);
}

// `options`: a JSON object with the command's options as keys.
Solution solve(const std::shared_ptr<const Problem>& problem, const std::string& options, const Solution* warm,
               const nb::object& stop, const nb::object& progress) {
    OptionTable table;
    const SolveOptions asked(table);
    planner::SearchLimits limits;
    limits.add_to(table);
    const JsonDocument document("solve", options);
    table.configure(document.root());
    planner::SolveRequest request;
    if (!asked.strategy.empty()) request.strategy = asked.strategy;
    request.seed = static_cast<std::uint64_t>(limits.seed);
    request.max_rounds = limits.rounds();
    request.target = planner::target_called(asked.target);
    request.lower_memory = !asked.then.empty();
    const schedule::Replayer replayer(problem->file.problem);
    request.starts = starts_from(warm, *problem, replayer);
    Control control;
    const Watch watch(control, stop, &progress, limits.budget);
    const auto execute = on_own_threads(limits.thread_count());
    const auto found = planner::solve_problem(replayer, request, execute, watch.time());
    if (!found.schedule) fail(ErrorKind::limit, "{}: {}", problem->file.problem.name, found.why_not);
    return {problem, search::solution(found, problem->file.problem, problem->file.sha256)};
}

}  // namespace

void bind_search(nb::module_& module) {
    module.def("solve", &solve, unlocked(), nb::arg("problem"), nb::arg("options"), nb::arg("warm").none(),
               nb::arg("stop").none(), nb::arg("progress").none());
}

}  // namespace pipeweaver::python
