#include "emit/targets/torch_csv.hpp"

#include "emit/targets/module_names.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;

namespace {

// How many receive buffers of each stage of a chain can be in use at once.

using Place = std::int64_t;  // in a rank's row; -1: before its first pass

// One microbatch's passes through one stage.
struct Passes {
    std::size_t forward = 0;
    std::size_t backward = 0;  ///< B or I
    std::size_t last = 0;      ///< B or W
};
using PassesOf = std::map<std::int64_t, std::map<std::int64_t, Passes>>;  // by stage and microbatch

PassesOf passes_of(const Problem& problem) {
    PassesOf chain;
    for (std::size_t t = 0; t < problem.tasks.size(); ++t) {
        const Task& task = problem.tasks[t];
        Passes& passes = chain[*task.stage][*task.microbatch];
        if (task.kind == TaskKind::forward) passes.forward = t;
        if (task.kind == TaskKind::backward || task.kind == TaskKind::input_gradient) passes.backward = t;
        if (task.kind == TaskKind::backward || task.kind == TaskKind::weight_gradient) passes.last = t;
    }
    return chain;
}

class BufferCount {
public:
    BufferCount(const Problem& problem, const Schedule& schedule, const Replay& replay)
        : problem_(problem),
          chain_(passes_of(problem)),
          place_(problem.tasks.size()),
          before_(problem.tasks.size()),
          by_start_(problem.tasks.size()) {
        for (const auto& row : schedule.order)
            for (std::size_t i = 0; i < row.size(); ++i) {
                place_[index(row[i])] = static_cast<Place>(i);
                if (i > 0) before_[index(row[i])].push_back(index(row[i - 1]));
            }
        for (const Edge& edge : problem.edges) before_[index(edge.to)].push_back(index(edge.from));
        std::iota(by_start_.begin(), by_start_.end(), std::size_t{0});
        std::sort(by_start_.begin(), by_start_.end(), [&](std::size_t a, std::size_t b) {
            return std::tuple(replay.start[a], a) < std::tuple(replay.start[b], b);
        });
    }

    std::vector<BuffersInUse> run() const {
        std::vector<BuffersInUse> all(chain_.size());
        for (std::size_t r = 0; r < problem_.ranks.size(); ++r) {
            const std::vector<Place> needs = needs_of(r);
            for (std::size_t s = 0; s < all.size(); ++s)
                if (rank_of(s) == r) all[s] = {most(s, s - 1, needs, true), most(s, s + 1, needs, false)};
        }
        return all;
    }

private:
    std::size_t rank_of(std::size_t stage) const {
        return index(problem_.tasks[chain_.at(static_cast<std::int64_t>(stage)).begin()->second.forward].rank);
    }

    // Per task: the last pass of the rank that must have ended before it, or is it.
    std::vector<Place> needs_of(std::size_t rank) const {
        std::vector<Place> needs(problem_.tasks.size(), -1);
        for (const std::size_t task : by_start_) {
            for (const std::size_t one : before_[task]) needs[task] = std::max(needs[task], needs[one]);
            if (index(problem_.tasks[task].rank) == rank) needs[task] = place_[task];
        }
        return needs;
    }

    // Of the stage's microbatches that come from its neighbour, forward or backward.
    std::int64_t most(std::size_t stage, std::size_t neighbour, const std::vector<Place>& needs, bool forward) const {
        if (neighbour >= chain_.size() || rank_of(neighbour) == rank_of(stage)) return 0;
        std::vector<std::pair<Place, std::int64_t>> events;  // uses end at a place before others begin there
        for (const auto& [microbatch, passes] : chain_.at(static_cast<std::int64_t>(stage))) {
            const Passes& sender = chain_.at(static_cast<std::int64_t>(neighbour)).at(microbatch);
            events.emplace_back(needs[forward ? sender.forward : sender.backward] + 1, 1);
            events.emplace_back(place_[passes.last] + 1, -1);
        }
        std::sort(events.begin(), events.end());
        std::int64_t used = 0, peak = 0;
        for (const auto& [place, change] : events) peak = std::max(peak, used += change);
        return peak;
    }

    const Problem& problem_;
    PassesOf chain_;
    std::vector<Place> place_;
    std::vector<std::vector<std::size_t>> before_;
    std::vector<std::size_t> by_start_;
};

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

// The stages in a framework's words and where its schedule has them, by `answer`, or why it cannot run them.
template <class Answer>
Writer framework_json(const ModuleNames& names, const Problem& problem, const Shape& shape, Answer answer) {
    const auto placement = placement_name(shape.stage_to_rank, problem.ranks.size());
    if (placement.empty())
        return {
            {"why_not", fmt::format("{} lays stages round the ranks or, two on each, there and back; these lie else",
                                    names.framework)}};
    const NamedStages named = named_stages(names, problem.stages);
    if (!named.why_not.empty()) return {{"why_not", named.why_not}};
    return answer(placement, named.stages);
}

using StageNames = std::vector<std::vector<std::string>>;

// What torchtitan is launched with to load the file.
Writer torchtitan_json(const Problem& problem, const Shape& shape) {
    return framework_json(torchtitan_names(), problem, shape,
                          [&](std::string_view placement, const StageNames& stages) {
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
                              for (const auto& stage : stages) args.push_back(fmt::format("{}", fmt::join(stage, ",")));
                              return Writer{{"module_fqns_per_model_part", stages}, {"args", std::move(args)}};
                          });
}

// NeMo Automodel's PipelineConfig.
Writer automodel_json(const Problem& problem, const Shape& shape) {
    return framework_json(automodel_names(), problem, shape, [&](std::string_view placement, const StageNames& stages) {
        return Writer{{"pp_schedule", placement},
                      {"pp_schedule_csv", "schedule.csv"},
                      {"pp_microbatch_size", 1},
                      {"pp_batch_size", shape.microbatches},
                      {"module_fqns_per_model_part", stages}};
    });
}

}  // namespace

std::vector<BuffersInUse> buffers_in_use(const Problem& problem, const Schedule& schedule, const Replay& replay) {
    return BufferCount(problem, schedule, replay).run();
}

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
