#include "emit/targets/torch_csv.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;

namespace {

using Cells = std::vector<std::string>;

std::string cell(const Task& task, char kind) { return fmt::format("{}{}{}", *task.stage, kind, *task.microbatch); }

// I and W as B where that changes no start.
Cells row(const Problem& problem, const std::vector<TaskId>& order, const std::vector<bool>& whole) {
    Cells cells;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Task& task = problem.tasks[index(order[i])];
        const bool joined = whole[index(order[i])];
        cells.push_back(cell(task, joined ? 'B' : letter(task.kind)));
        if (joined) ++i;
    }
    return cells;
}

nlohmann::ordered_json stage_list(const Problem& problem) {
    auto list = nlohmann::ordered_json::array();
    for (const Stage& stage : problem.stages) {
        nlohmann::ordered_json parts = nlohmann::ordered_json::array();
        for (const StagePart& part : stage.parts) {
            nlohmann::ordered_json entry{{"module", part.module}, {"first_layer", nullptr}, {"layers", nullptr}};
            if (part.first_layer) entry["first_layer"] = *part.first_layer;
            if (part.layers) entry["layers"] = *part.layers;
            parts.push_back(std::move(entry));
        }
        list.push_back({{"stage", stage.stage}, {"rank", index(stage.rank)}, {"parts", std::move(parts)}});
    }
    return list;
}

}  // namespace

std::optional<std::string> why_no_torch_csv(const Problem& problem, const Schedule& schedule) {
    const auto& rules = planner::target("torch-csv");
    auto why = rules.inexpressible(problem);
    if (!why) why = rules.breaks(problem, schedule);
    if (!why && replay(problem, schedule).outcome != Outcome::completed) why = "the schedule does not run";
    return why ? std::optional("torch-csv: " + *why) : std::nullopt;
}

TorchFiles torch_csv(const Problem& problem, const Schedule& schedule) {
    if (const auto why = why_no_torch_csv(problem, schedule)) fail(ErrorKind::limit, "{}", *why);
    const Replay replay = schedule::replay(problem, schedule);

    TorchFiles files;
    std::map<std::int64_t, std::size_t> rank_of;
    std::int64_t microbatches = 0;
    for (const Task& task : problem.tasks) {
        rank_of[*task.stage] = index(task.rank);
        microbatches = std::max(microbatches, *task.microbatch + 1);
    }
    const auto whole = joinable(problem, schedule, replay);
    for (const auto& order : schedule.order)
        files.csv += fmt::format("{}\n", fmt::join(row(problem, order, whole), ","));

    nlohmann::ordered_json ranks = nlohmann::ordered_json::array(), order = nlohmann::ordered_json::array();
    for (const auto& [stage, rank] : rank_of) ranks.push_back(rank);
    for (std::int64_t m = 0; m < microbatches; ++m) order.push_back(m);
    files.schedule =
        nlohmann::ordered_json{{"format", "pipeweaver-torch/1"},    {"pp_size", problem.ranks.size()},
                               {"num_stages", rank_of.size()},      {"n_microbatches", microbatches},
                               {"stage_to_rank", std::move(ranks)}, {"microbatch_order", std::move(order)},
                               {"stages", stage_list(problem)},     {"predicted_makespan_ns", replay.makespan.count()}}
            .dump(1) +
        "\n";
    return files;
}

}  // namespace pipeweaver::emit
