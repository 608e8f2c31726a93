#include "emit/targets/torch_csv.hpp"

#include "emit/targets/module_names.hpp"
#include "emit/targets/torch_buffers.hpp"
#include "emit/targets/torch_comms.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;

namespace {

using Cells = std::vector<std::string>;
using Writer = nlohmann::ordered_json;

// Who runs what, and how often.
struct Shape {
    std::vector<std::size_t> stage_to_rank;
    std::int64_t microbatches = 0;
};

Shape shape_of(const Problem& problem) {
    std::map<std::int64_t, std::size_t> rank_of;
    Shape shape;
    for (const Task& task : problem.tasks) {
        rank_of[*task.stage] = index(task.rank);
        shape.microbatches = std::max(shape.microbatches, *task.microbatch + 1);
    }
    for (const auto& [stage, rank] : rank_of) shape.stage_to_rank.push_back(rank);
    return shape;
}

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

Writer stage_list(const Problem& problem) {
    auto list = Writer::array();
    for (const Stage& stage : problem.stages) {
        Writer parts = Writer::array();
        for (const StagePart& part : stage.parts) {
            Writer entry{{"module", part.module}, {"first_layer", nullptr}, {"layers", nullptr}};
            if (part.first_layer) entry["first_layer"] = *part.first_layer;
            if (part.layers) entry["layers"] = *part.layers;
            parts.push_back(std::move(entry));
        }
        list.push_back({{"stage", stage.stage}, {"rank", index(stage.rank)}, {"parts", std::move(parts)}});
    }
    return list;
}

Writer buffers_json(const Problem& problem, const Schedule& schedule, const Replay& replay) {
    Writer list = Writer::array();
    for (const BuffersInUse& stage : buffers_in_use(problem, schedule, replay))
        list.push_back({{"forward", stage.forward}, {"backward", stage.backward}});
    return list;
}

Writer why_not_json(std::string_view why) { return {{"why_not", why}}; }

// What torchtitan is launched with to load the file.
Writer torchtitan_json(const Problem& problem, const Shape& shape) {
    const auto placement = placement_name(shape.stage_to_rank, problem.ranks.size());
    if (placement.empty())
        return why_not_json("torchtitan lays stages round the ranks or, two on each, there and back; these lie else");
    const auto named = named_stages(torchtitan_names(), problem.stages);
    if (!named.why_not.empty()) return why_not_json(named.why_not);
    Writer args{"--parallelism.pipeline_parallel_degree",
                std::to_string(problem.ranks.size()),
                "--parallelism.pipeline_parallel_schedule",
                placement,
                "--parallelism.pipeline_parallel_schedule_csv",
                "schedule.csv",
                "--parallelism.pipeline_parallel_microbatch_size",
                "1",
                "--training.local_batch_size",
                std::to_string(shape.microbatches),
                "--training.disable_cuda_graphs",
                "--parallelism.module_fqns_per_model_part"};
    for (const auto& stage : named.stages) args.push_back(fmt::format("{}", fmt::join(stage, ",")));
    return {{"module_fqns_per_model_part", named.stages}, {"args", std::move(args)}};
}

// NeMo Automodel's PipelineConfig.
Writer automodel_json(const Problem& problem, const Shape& shape) {
    const auto placement = placement_name(shape.stage_to_rank, problem.ranks.size());
    if (placement.empty())
        return why_not_json(
            "NeMo Automodel lays stages round the ranks or, two on each, there and back; these lie else");
    const auto named = named_stages(automodel_names(), problem.stages);
    if (!named.why_not.empty()) return why_not_json(named.why_not);
    return {{"pp_schedule", placement},
            {"pp_schedule_csv", "schedule.csv"},
            {"pp_microbatch_size", 1},
            {"pp_batch_size", shape.microbatches},
            {"module_fqns_per_model_part", named.stages}};
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
    const auto whole = joinable(problem, schedule, replay);
    const Shape shape = shape_of(problem);

    TorchFiles files;
    for (const auto& order : schedule.order)
        files.csv += fmt::format("{}\n", fmt::join(row(problem, order, whole), ","));
    files.comms = torch_comms(problem, schedule, whole);
    Writer order = Writer::array();
    for (std::int64_t m = 0; m < shape.microbatches; ++m) order.push_back(m);
    files.schedule = Writer{{"format", "pipeweaver-torch/1"},
                            {"pp_size", problem.ranks.size()},
                            {"num_stages", shape.stage_to_rank.size()},
                            {"n_microbatches", shape.microbatches},
                            {"stage_to_rank", shape.stage_to_rank},
                            {"microbatch_order", std::move(order)},
                            {"stages", stage_list(problem)},
                            {"receive_buffers", buffers_json(problem, schedule, replay)},
                            {"torchtitan", torchtitan_json(problem, shape)},
                            {"automodel", automodel_json(problem, shape)},
                            {"predicted_makespan_ns", replay.makespan.count()}}
                         .dump(1) +
                     "\n";
    return files;
}

}  // namespace pipeweaver::emit
