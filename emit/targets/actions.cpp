// Action lists from a schedule.
#include "pipeweaver/emit/actions.hpp"

#include "pipeweaver/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;

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

Pass pass_of(const Task& task) { return {*task.stage, *task.microbatch, *task.item}; }

bool is_forward(const Task& task) { return task.kind == TaskKind::forward; }

// What the emitter looks up again and again.
struct Tables {
    Tables(const StepProblem& with, const ReplicaData& data) : step(with), roles(data.stages) {
        if (roles.empty()) guess_roles();
        for (std::size_t t = 0; t < step.transfers.size(); ++t) {
            const auto [from, to] = ends(t);
            by_ends[{pass_of(from), pass_of(to)}] = t;
            if (is_forward(from)) taken.insert(pass_of(from));
        }
    }

    std::pair<const Task&, const Task&> ends(std::size_t transfer) const {
        const Edge& edge = step.problem.edges[step.transfers[transfer].edge];
        return {step.problem.tasks[index(edge.from)], step.problem.tasks[index(edge.to)]};
    }

    // The tensor that goes the other way: an activation's gradient, a gradient's activation.
    std::optional<std::size_t> opposite(std::size_t transfer) const {
        const auto [from, to] = ends(transfer);
        const auto found = by_ends.find({pass_of(to), pass_of(from)});
        return found == by_ends.end() ? std::nullopt : std::optional(found->second);
    }

    bool has_loss(const Task& task) const { return is_forward(task) && !taken.contains(pass_of(task)); }

    const std::string& chain(const Task& task) const { return roles[static_cast<std::size_t>(*task.stage)].chain; }

    const StepProblem& step;
    std::vector<StageRole> roles;
    std::map<std::pair<Pass, Pass>, std::size_t> by_ends;
    std::set<Pass> taken;

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

ActionStage stage_of(const Stage& stage, StageRole role) {
    if (role.parts_trained.empty()) role.parts_trained.assign(stage.parts.size(), true);
    return {stage.stage, index(stage.rank), stage.parts, std::move(role)};
}

ActionTensor tensor_of(const Tables& tables, std::size_t t, const ReplicaData& data) {
    const Transfer& transfer = tables.step.transfers[t];
    const auto [from, to] = tables.ends(t);
    ActionTensor tensor;
    tensor.gradient = !is_forward(from);
    tensor.from = pass_of(from);
    tensor.to = pass_of(to);
    tensor.reverse = tables.opposite(t);
    if (transfer.rows >= 0) {
        tensor.shape = {transfer.rows, transfer.columns};
        tensor.per_gpu = transfer.message;
    }
    if (!tensor.gradient) {
        tensor.by_item = tables.chain(from) != tables.chain(to);
        if (t < data.slices.size()) tensor.slices = data.slices[t];
    } else if (!tensor.reverse) {
        fail(ErrorKind::limit, "{}: a gradient goes from '{}' to '{}', but no activation the other way",
             tables.step.problem.name, from.label, to.label);
    }
    return tensor;
}

Compute compute(const Tables& tables, std::size_t task, Recompute recompute, const ReplicaData& data) {
    const Task& t = tables.step.problem.tasks[task];
    Compute action{t.kind, task, pass_of(t), t.module, recompute, {}};
    if (tables.has_loss(t)) action.loss_weight = data.loss_weight.empty() ? 1.0 : data.loss_weight[task];
    return action;
}

Message message(Message::Op op, std::size_t tensor, std::size_t peer) {
    return {op, tensor, peer, static_cast<std::int64_t>(tensor)};
}

// Per rank: the task after which its gradients are complete; none: it has no trained stage with a backward.
std::vector<std::optional<std::size_t>> last_backwards(const Tables& tables, const std::vector<std::size_t>& order) {
    const Problem& problem = tables.step.problem;
    std::vector<std::optional<std::size_t>> last(problem.ranks.size());
    for (const std::size_t task : order) {
        const Task& t = problem.tasks[task];
        if (!is_forward(t) && tables.roles[static_cast<std::size_t>(*t.stage)].trained) last[index(t.rank)] = task;
    }
    return last;
}

Reduce reduce(const Tables& tables, std::size_t rank) {
    Reduce action;
    for (std::size_t s = 0; s < tables.roles.size(); ++s)
        if (index(tables.step.problem.stages[s].rank) == rank && tables.roles[s].trained)
            action.stages.push_back(tables.step.problem.stages[s].stage);
    return action;
}

std::vector<std::vector<Action>> lists_of(const Tables& tables, const Schedule& schedule, const Replay& replay,
                                          const std::vector<Recompute>& modes, const ReplicaData& data) {
    const StepProblem& step = tables.step;
    const Problem& problem = step.problem;
    const Replayer replayer(problem);
    const auto sent = transfers_by(step, true), received = transfers_by(step, false);
    const auto order = by_start(replay, problem);
    const auto last = last_backwards(tables, order);
    std::vector<std::vector<Action>> lists(problem.ranks.size());
    for (std::size_t r = 0; r < lists.size(); ++r)
        if (Reduce none = reduce(tables, r); !last[r] && !none.stages.empty()) lists[r].emplace_back(std::move(none));
    for (const std::size_t task : order) {
        const std::size_t rank = index(problem.tasks[task].rank);
        auto& list = lists[rank];
        for (const std::size_t t : received[task])
            if (tables.ends(t).first.rank != tables.ends(t).second.rank)
                list.emplace_back(Message{Message::Op::wait, t});
        const std::uint32_t pair = replayer.pair_of(task);
        const Recompute recompute = pair == Replayer::unpaired ? Recompute::none : modes[schedule.mode[pair]];
        list.emplace_back(compute(tables, task, recompute, data));
        for (const std::size_t t : sent[task]) {
            const std::size_t to = index(tables.ends(t).second.rank);
            if (to == rank) continue;
            list.emplace_back(message(Message::Op::send, t, to));
            lists[to].emplace_back(message(Message::Op::receive, t, rank));
        }
        if (last[rank] == task) list.emplace_back(reduce(tables, rank));
    }
    return lists;
}

}  // namespace

ActionLists derive_actions(const StepProblem& step, const Schedule& schedule, const Replay& replay,
                           const std::vector<Recompute>& modes, const ReplicaData& data) {
    const Tables tables(step, data);
    const Problem& problem = step.problem;
    ActionLists actions{problem.name, data.replica, data.replicas, most_alive(problem, schedule, modes), {}, {}, {}};
    for (std::size_t s = 0; s < problem.stages.size(); ++s)
        actions.stages.push_back(stage_of(problem.stages[s], tables.roles[s]));
    for (std::size_t t = 0; t < step.transfers.size(); ++t) actions.tensors.push_back(tensor_of(tables, t, data));
    actions.ranks = lists_of(tables, schedule, replay, modes, data);
    return actions;
}

std::optional<std::string> why_no_actions(const Problem& problem, const Schedule& schedule) {
    for (std::size_t s = 0; s < problem.stages.size(); ++s)
        if (problem.stages[s].stage != static_cast<std::int64_t>(s))
            return fmt::format("{}: stages[{}] has the number {}: action lists need them in order", problem.name, s,
                               problem.stages[s].stage);
    for (const Pair& pair : problem.pairs)
        if (pair.modes.size() > usual_modes().size())
            return fmt::format("{}: pairs have more modes than none, half and full recomputation", problem.name);
    for (const Task& task : problem.tasks) {
        if (task.kind == TaskKind::other)
            return fmt::format("{}: task '{}' is of kind X, which no executor knows", problem.name, task.label);
        if (!task.stage || !task.microbatch || static_cast<std::size_t>(*task.stage) >= problem.stages.size())
            return fmt::format("{}: task '{}' has no microbatch or no stage that the problem lists", problem.name,
                               task.label);
    }
    if (replay(problem, schedule).outcome == Outcome::completed) return std::nullopt;
    return fmt::format("{}: the schedule does not run", problem.name);
}

ActionLists derive_actions(const Problem& problem, const Schedule& schedule) {
    if (const auto why = why_no_actions(problem, schedule)) fail(ErrorKind::limit, "{}", *why);
    const Replay replay = schedule::replay(problem, schedule);
    StepProblem step;
    step.problem = problem;
    for (Task& task : step.problem.tasks)
        if (!task.item) task.item = 0;
    for (std::size_t e = 0; e < problem.edges.size(); ++e) {
        const Task& from = step.problem.tasks[index(problem.edges[e].from)];
        const Task& to = step.problem.tasks[index(problem.edges[e].to)];
        if (pass_of(from) != pass_of(to) && is_forward(from) == is_forward(to) && to.kind != TaskKind::weight_gradient)
            step.transfers.push_back({e, {}, -1, -1});
    }
    return derive_actions(step, schedule, replay, usual_modes(), {});
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
