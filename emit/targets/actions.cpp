#include "pipeweaver/emit/actions.hpp"

#include "pipeweaver/base/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using Writer = nlohmann::ordered_json;

namespace {

std::vector<std::size_t> by_start(const Replay& replay, const Problem& problem) {
    std::vector<std::size_t> order(problem.tasks.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::tuple(replay.start[a], index(problem.tasks[a].rank), a) <
               std::tuple(replay.start[b], index(problem.tasks[b].rank), b);
    });
    return order;
}

// Transfers by one of their tasks.
std::vector<std::vector<std::size_t>> transfers_by(const StepProblem& step, bool sender) {
    std::vector<std::vector<std::size_t>> by(step.problem.tasks.size());
    for (std::size_t t = 0; t < step.transfers.size(); ++t) {
        const Edge& edge = step.problem.edges[step.transfers[t].edge];
        by[index(sender ? edge.from : edge.to)].push_back(t);
    }
    return by;
}

Writer place_of(const Task& task) {
    return {{"stage", *task.stage}, {"microbatch", *task.microbatch}, {"item", *task.item}};
}

using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
Place key_of(const Task& task) { return {*task.stage, *task.microbatch, *task.item}; }

bool is_forward(const Task& task) { return task.kind == TaskKind::forward; }

// What the emitter looks up again and again.
struct Tables {
    Tables(const StepProblem& with, const ReplicaData& data) : step(with), roles(data.stages) {
        if (roles.empty()) guess_roles();
        for (std::size_t t = 0; t < step.transfers.size(); ++t) {
            const auto [from, to] = ends(t);
            by_ends[{key_of(from), key_of(to)}] = t;
            if (is_forward(from)) taken.insert(key_of(from));
        }
    }

    std::pair<const Task&, const Task&> ends(std::size_t transfer) const {
        const Edge& edge = step.problem.edges[step.transfers[transfer].edge];
        return {step.problem.tasks[index(edge.from)], step.problem.tasks[index(edge.to)]};
    }

    // The tensor that goes the other way: an activation's gradient, a gradient's activation.
    std::optional<std::size_t> opposite(std::size_t transfer) const {
        const auto [from, to] = ends(transfer);
        const auto found = by_ends.find({key_of(to), key_of(from)});
        return found == by_ends.end() ? std::nullopt : std::optional(found->second);
    }

    bool has_loss(const Task& task) const { return is_forward(task) && !taken.contains(key_of(task)); }

    const std::string& chain(const Task& task) const { return roles[static_cast<std::size_t>(*task.stage)].chain; }

    const StepProblem& step;
    std::vector<StageRole> roles;
    std::map<std::pair<Place, Place>, std::size_t> by_ends;
    std::set<Place> taken;

private:
    void guess_roles() {
        roles.resize(step.problem.stages.size());
        for (const Task& task : step.problem.tasks)
            if (task.stage && static_cast<std::size_t>(*task.stage) < roles.size())
                roles[static_cast<std::size_t>(*task.stage)].chain = task.module;
        for (std::size_t s = 0; s < roles.size(); ++s)
            roles[s].reads_batch = s == 0 || roles[s].chain != roles[s - 1].chain;
    }
};

Writer stage_json(const Stage& stage, const StageRole& role) {
    Writer parts = Writer::array();
    for (std::size_t k = 0; k < stage.parts.size(); ++k) {
        const StagePart& part = stage.parts[k];
        Writer entry{{"module", part.module}};
        if (part.first_layer) entry["first_layer"] = *part.first_layer;
        if (part.layers) entry["layers"] = *part.layers;
        entry["trainable"] = role.parts_trained.empty() || role.parts_trained[k];
        parts.push_back(std::move(entry));
    }
    return {{"stage", stage.stage},      {"rank", index(stage.rank)}, {"chain", role.chain},
            {"trainable", role.trained}, {"gradient", role.gradient}, {"reads_batch", role.reads_batch},
            {"inputs", role.inputs},     {"parts", std::move(parts)}};
}

Writer tensor_json(const Tables& tables, std::size_t t, const ReplicaData& data) {
    const Transfer& transfer = tables.step.transfers[t];
    const auto [from, to] = tables.ends(t);
    const auto other = tables.opposite(t);
    Writer tensor{{"tensor", t},
                  {"kind", is_forward(from) ? "activation" : "gradient"},
                  {"from", place_of(from)},
                  {"to", place_of(to)},
                  {"shape", transfer.rows < 0 ? Writer(nullptr) : Writer{transfer.rows, transfer.columns}}};
    if (!is_forward(from)) {
        if (!other)
            fail(ErrorKind::limit, "{}: a gradient goes from '{}' to '{}', but no activation the other way",
                 tables.step.problem.name, from.label, to.label);
        tensor["of"] = *other;
    } else {
        tensor["gradient"] = other ? Writer(*other) : Writer(nullptr);
        tensor["join"] = tables.chain(from) == tables.chain(to) ? "previous" : "item";
        if (t < data.slices.size() && !data.slices[t].empty()) tensor["slices"] = data.slices[t];
    }
    tensor["dtype"] = "bf16";
    if (transfer.rows >= 0) tensor["bytes_per_gpu"] = transfer.message.count;
    return tensor;
}

Writer compute(const Tables& tables, std::size_t task, std::string_view recompute, const ReplicaData& data) {
    const Task& t = tables.step.problem.tasks[task];
    Writer action{{"op", std::string(1, letter(t.kind))}, {"task", task}};
    action.update(place_of(t));
    action["module"] = t.module;
    if (t.kind != TaskKind::weight_gradient) action["recompute"] = recompute;
    if (tables.has_loss(t)) action["loss_weight"] = data.loss_weight.empty() ? 1.0 : data.loss_weight[task];
    return action;
}

Writer message(std::string_view op, std::size_t tensor, std::optional<std::size_t> peer) {
    Writer action{{"op", op}, {"tensor", tensor}};
    if (peer) {
        action["peer"] = *peer;
        action["tag"] = tensor;
    }
    return action;
}

// Per rank: the task behind which its gradients are complete; nothing: it has no trained stage with a backward.
std::vector<std::optional<std::size_t>> last_backwards(const Tables& tables, const std::vector<std::size_t>& order) {
    const Problem& problem = tables.step.problem;
    std::vector<std::optional<std::size_t>> last(problem.ranks.size());
    for (const std::size_t task : order) {
        const Task& t = problem.tasks[task];
        if (!is_forward(t) && tables.roles[static_cast<std::size_t>(*t.stage)].trained) last[index(t.rank)] = task;
    }
    return last;
}

Writer reduce(const Tables& tables, std::size_t rank) {
    Writer stages = Writer::array();
    for (std::size_t s = 0; s < tables.roles.size(); ++s)
        if (index(tables.step.problem.stages[s].rank) == rank && tables.roles[s].trained)
            stages.push_back(tables.step.problem.stages[s].stage);
    return {{"op", "reduce"}, {"stages", std::move(stages)}};
}

std::string lines(const std::vector<std::string>& entries) {
    return entries.empty() ? "[]" : fmt::format("[\n{}\n]", fmt::join(entries, ",\n"));
}

std::vector<std::vector<std::string>> rows_of(const Tables& tables, const Schedule& schedule, const Replay& replay,
                                              const std::vector<Recompute>& modes, const ReplicaData& data) {
    const StepProblem& step = tables.step;
    const Problem& problem = step.problem;
    const Replayer replayer(problem);
    const auto sent = transfers_by(step, true), received = transfers_by(step, false);
    const auto order = by_start(replay, problem);
    const auto last = last_backwards(tables, order);
    std::vector<std::vector<std::string>> rows(problem.ranks.size());
    for (std::size_t r = 0; r < rows.size(); ++r)
        if (const auto none = reduce(tables, r); !last[r] && !none["stages"].empty()) rows[r].push_back(none.dump());
    for (const std::size_t task : order) {
        const std::size_t rank = index(problem.tasks[task].rank);
        auto& row = rows[rank];
        for (const std::size_t t : received[task])
            if (tables.ends(t).first.rank != tables.ends(t).second.rank) row.push_back(message("wait", t, {}).dump());
        const std::uint32_t pair = replayer.pair_of(task);
        const auto recompute = pair == Replayer::unpaired ? "none" : name_of(modes[schedule.mode[pair]]);
        row.push_back(compute(tables, task, recompute, data).dump());
        for (const std::size_t t : sent[task]) {
            const std::size_t to = index(tables.ends(t).second.rank);
            if (to == rank) continue;
            row.push_back(message("send", t, to).dump());
            rows[to].push_back(message("receive", t, rank).dump());
        }
        if (last[rank] == task) row.push_back(reduce(tables, rank).dump());
    }
    return rows;
}

}  // namespace

std::string actions(const StepProblem& step, const Schedule& schedule, const Replay& replay,
                    const std::vector<Recompute>& modes, const ReplicaData& data) {
    const Tables tables(step, data);
    const Problem& problem = step.problem;
    std::vector<std::string> stages, tensors, ranks;
    for (std::size_t s = 0; s < problem.stages.size(); ++s)
        stages.push_back(stage_json(problem.stages[s], tables.roles[s]).dump());
    for (std::size_t t = 0; t < step.transfers.size(); ++t) tensors.push_back(tensor_json(tables, t, data).dump());
    for (const auto& row : rows_of(tables, schedule, replay, modes, data))
        ranks.push_back(fmt::format("[{}]", fmt::join(row, ",\n ")));
    const Writer head{{"format", "pipeweaver-actions/1"}, {"problem", problem.name},
                      {"replica", data.replica},          {"replicas", data.replicas},
                      {"ranks", problem.ranks.size()},    {"most_alive", most_alive(problem, schedule, modes)}};
    std::string text = head.dump();
    text.pop_back();
    return text + fmt::format(",\n\"stages\":{},\n\"tensors\":{},\n\"actions\":{}}}\n", lines(stages), lines(tensors),
                              lines(ranks));
}

namespace {

void require_places(const Problem& problem) {
    for (std::size_t s = 0; s < problem.stages.size(); ++s)
        if (problem.stages[s].stage != static_cast<std::int64_t>(s))
            fail(ErrorKind::limit, "{}: stages[{}] has the number {}: action lists need them in order", problem.name, s,
                 problem.stages[s].stage);
    for (const Pair& pair : problem.pairs)
        if (pair.modes.size() > StepInput{}.modes.size())
            fail(ErrorKind::limit, "{}: pairs have more modes than none, half and full recomputation", problem.name);
    for (const Task& task : problem.tasks) {
        if (task.kind == TaskKind::other)
            fail(ErrorKind::limit, "{}: task '{}' is of kind X, which no executor knows", problem.name, task.label);
        if (!task.stage || !task.microbatch || static_cast<std::size_t>(*task.stage) >= problem.stages.size())
            fail(ErrorKind::limit, "{}: task '{}' has no microbatch or no stage that the problem lists", problem.name,
                 task.label);
    }
}

}  // namespace

std::string actions(const Problem& problem, const Schedule& schedule) {
    require_places(problem);
    const Replay replay = schedule::replay(problem, schedule);
    if (replay.outcome != Outcome::completed) fail(ErrorKind::limit, "{}: the schedule does not run", problem.name);
    StepProblem step;
    step.problem = problem;
    for (Task& task : step.problem.tasks)
        if (!task.item) task.item = 0;
    for (std::size_t e = 0; e < problem.edges.size(); ++e) {
        const Task& from = step.problem.tasks[index(problem.edges[e].from)];
        const Task& to = step.problem.tasks[index(problem.edges[e].to)];
        if (key_of(from) != key_of(to) && is_forward(from) == is_forward(to) && to.kind != TaskKind::weight_gradient)
            step.transfers.push_back({e, {}, -1, -1});
    }
    return actions(step, schedule, replay, StepInput{}.modes, {});
}

std::vector<std::int64_t> most_alive(const Problem& problem, const Schedule& schedule,
                                     const std::vector<Recompute>& modes) {
    const Replayer replayer(problem);
    std::vector<std::int64_t> most;
    for (const auto& order : schedule.order) {
        std::int64_t alive = 0, peak = 0;
        for (const TaskId task : order) {
            const std::uint32_t pair = replayer.pair_of(index(task));
            if (pair == Replayer::unpaired) continue;
            const bool again = modes[schedule.mode[pair]] == Recompute::full;
            const bool split = problem.pairs[pair].weight.has_value();
            const TaskKind kind = problem.tasks[index(task)].kind;
            if (kind == TaskKind::forward ? !again : again && kind != TaskKind::weight_gradient) ++alive;
            peak = std::max(peak, alive);
            if (kind != TaskKind::forward && (!split || kind == TaskKind::weight_gradient)) --alive;
        }
        most.push_back(peak);
    }
    return most;
}

std::vector<Bytes> receive_buffers_needed(const StepProblem& step, const Replay& replay) {
    struct Event {
        Duration time;
        int order;  // at one instant, buffers are freed before others are taken
        std::int64_t change;
    };
    const Problem& problem = step.problem;
    std::vector<std::vector<Event>> events(problem.ranks.size());
    for (const Transfer& transfer : step.transfers) {
        const Edge& edge = problem.edges[transfer.edge];
        const std::size_t to = index(problem.tasks[index(edge.to)].rank);
        if (index(problem.tasks[index(edge.from)].rank) == to) continue;
        events[to].push_back({replay.start[index(edge.from)], 1, transfer.message.count});
        events[to].push_back({replay.start[index(edge.to)], 0, -transfer.message.count});
    }
    std::vector<Bytes> peaks;
    for (auto& rank : events) {
        std::sort(rank.begin(), rank.end(), [](const Event& a, const Event& b) {
            return std::tuple(a.time, a.order, a.change) < std::tuple(b.time, b.order, b.change);
        });
        std::int64_t used = 0, peak = 0;
        for (const Event& event : rank) peak = std::max(peak, used += event.change);
        peaks.push_back({peak});
    }
    return peaks;
}

}  // namespace pipeweaver::emit
