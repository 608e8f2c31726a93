// Action lists from a schedule.
#include "pipeweaver/emit/actions.hpp"

#include "pipeweaver/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

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

Pass pass_of(const Task& task) { return {*task.stage, *task.microbatch, *task.item}; }

bool is_forward(const Task& task) { return task.kind == TaskKind::forward; }

// A tensor and the tasks that it goes between.
struct Handed {
    std::size_t from = 0, to = 0;
    ActionTensor tensor;
};

// What the emitter looks up again and again.
struct Tables {
    Tables(const StepProblem& with, const ReplicaData& with_data)
        : step(with), data(with_data), roles(with_data.stages), of_phase(with.problem.tasks.size()) {
        if (roles.empty()) guess_roles();
        for (std::size_t p = 0; p < data.phases.size(); ++p)
            for (const auto& task : {data.phases[p].forward, data.phases[p].backward})
                if (task) of_phase[*task].push_back(p);
        for (std::size_t t = 0; t < step.transfers.size(); ++t) add_transfer(t);
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            by_ends[{tensors[t].tensor.from, tensors[t].tensor.to}] = t;
            if (!tensors[t].tensor.gradient) taken.insert(tensors[t].tensor.from);
        }
        for (Handed& one : tensors) one.tensor.reverse = opposite(one);
    }

    const Task& task(std::size_t number) const { return step.problem.tasks[number]; }
    RankId rank_of(std::size_t number) const { return task(number).rank; }

    // What a task runs: a pass of its stage, or one through each module in phases that has items on its rank.
    std::vector<Pass> passes_of(std::size_t number) const {
        if (task(number).stage) return {pass_of(task(number))};
        std::vector<Pass> passes;
        for (const std::size_t p : of_phase[number]) passes.push_back({data.phases[p].stage.stage, 0, 0});
        return passes;
    }

    const StageRole& role_of(const Pass& pass) const {
        const auto stage = static_cast<std::size_t>(pass.stage);
        return stage < roles.size() ? roles[stage] : data.phases[stage - roles.size()].stage.role;
    }

    bool has_loss(std::size_t number, const Pass& pass) const {
        return is_forward(task(number)) && !taken.contains(pass);
    }

    // Tensors by one of their tasks.
    std::vector<std::vector<std::size_t>> by_task(bool sender) const {
        std::vector<std::vector<std::size_t>> by(step.problem.tasks.size());
        for (std::size_t t = 0; t < tensors.size(); ++t) by[sender ? tensors[t].from : tensors[t].to].push_back(t);
        return by;
    }

    const StepProblem& step;
    const ReplicaData& data;
    std::vector<StageRole> roles;                    // of the chains' stages
    std::vector<std::vector<std::size_t>> of_phase;  // per task
    std::vector<Handed> tensors;

private:
    void guess_roles() {
        roles.resize(step.problem.stages.size());
        for (const Task& task : step.problem.tasks)
            if (task.stage && static_cast<std::size_t>(*task.stage) < roles.size())
                roles[static_cast<std::size_t>(*task.stage)].chain = task.module;
        for (std::size_t s = 0; s < roles.size(); ++s)
            roles[s].reads_batch = s == 0 || roles[s].chain != roles[s - 1].chain;
    }

    void add_transfer(std::size_t t) {
        const Transfer& transfer = step.transfers[t];
        const Edge& edge = step.problem.edges[transfer.edge];
        const std::size_t from = index(edge.from), to = index(edge.to);
        if (!task(from).stage || !task(to).stage) return add_of_phase(from, to, transfer);
        ActionTensor tensor{!is_forward(task(from)), pass_of(task(from)), pass_of(task(to)), {}, {}, false, {}};
        if (transfer.rows >= 0) {
            tensor.shape = {transfer.rows, transfer.columns};
            tensor.per_gpu = transfer.message;
        }
        if (!tensor.gradient) {
            tensor.by_item = role_of(tensor.from).chain != role_of(tensor.to).chain;
            if (t < data.slices.size()) tensor.slices = data.slices[t];
        }
        tensors.push_back({from, to, std::move(tensor)});
    }

    // What a microbatch takes of each module's output, or gives back; nothing of those of which it has no items there.
    void add_of_phase(std::size_t from, std::size_t to, const Transfer& transfer) {
        const bool forward = !task(from).stage;
        const Pass other = pass_of(task(forward ? to : from));
        for (const std::size_t p : of_phase[forward ? from : to]) {
            const PhaseStage& phase = data.phases[p];
            const Pass own{phase.stage.stage, 0, 0};
            const auto output = std::find_if(phase.outputs.begin(), phase.outputs.end(), [&](const PhaseOutput& one) {
                return one.microbatch == other.microbatch;
            });
            if (output == phase.outputs.end()) continue;
            ActionTensor tensor{!forward, forward ? own : other, forward ? other : own, {}, {}, forward, {}};
            tensor.shape = {output->rows.second - output->rows.first, output->columns};
            tensor.per_gpu = transfer.message;
            if (forward && !output->is_all) tensor.slices = {output->rows};
            tensors.push_back({from, to, std::move(tensor)});
        }
    }

    // The tensor that goes the other way: an activation's gradient, a gradient's activation.
    std::optional<std::size_t> opposite(const Handed& one) const {
        const auto found = by_ends.find({one.tensor.to, one.tensor.from});
        if (found != by_ends.end()) return found->second;
        if (one.tensor.gradient)
            fail(ErrorKind::limit, "{}: a gradient goes from '{}' to '{}', but no activation the other way",
                 step.problem.name, task(one.from).label, task(one.to).label);
        return std::nullopt;
    }

    std::map<std::pair<Pass, Pass>, std::size_t> by_ends;
    std::set<Pass> taken;
};

ActionStage stage_of(const Stage& stage, StageRole role, std::optional<ModuleLayout> layout) {
    if (role.parts_trained.empty()) role.parts_trained.assign(stage.parts.size(), true);
    return {stage.stage, index(stage.rank), stage.parts, std::move(role), layout};
}

std::vector<ActionStage> stages_of(const Tables& tables) {
    std::vector<ActionStage> stages;
    const auto& all = tables.step.problem.stages;
    for (std::size_t s = 0; s < all.size(); ++s)
        stages.push_back(
            stage_of(all[s], tables.roles[s], s < tables.data.layouts.size() ? tables.data.layouts[s] : std::nullopt));
    for (const PhaseStage& phase : tables.data.phases) stages.push_back(phase.stage);
    return stages;
}

Compute compute(const Tables& tables, std::size_t task, const Pass& pass, Recompute recompute) {
    const auto& weights = tables.data.loss_weight;
    const Task& of = tables.task(task);
    Compute action{of.kind, task, pass, of.stage ? of.module : tables.role_of(pass).chain, recompute, {}};
    if (tables.has_loss(task, pass)) action.loss_weight = weights.empty() ? 1.0 : weights[task];
    return action;
}

Message message(Message::Op op, std::size_t tensor, std::size_t peer) {
    return {op, tensor, peer, static_cast<std::int64_t>(tensor)};
}

// When gradients of stages are complete. Every rank comes to its stages in one order whatever the schedule, since all
// replicas sum them together: chains from their last stage to the first, then modules in phases.
class Reductions {
public:
    Reductions(const Tables& tables, const std::vector<ActionStage>& stages)
        : tables_(tables), left_(stages.size()), due_(tables.step.problem.ranks.size()) {
        const auto trained = [&](std::size_t s) {
            if (stages[s].role.trained) due_[stages[s].rank].push_back(s);
        };
        const std::size_t of_chains = tables.roles.size();
        for (std::size_t s = of_chains; s-- > 0;) trained(s);
        for (std::size_t s = of_chains; s < stages.size(); ++s) trained(s);
        for (auto& due : due_) std::reverse(due.begin(), due.end());
        for (std::size_t task = 0; task < tables.step.problem.tasks.size(); ++task)
            for (const Pass& pass : backwards_of(task)) ++left_[static_cast<std::size_t>(pass.stage)];
    }

    void has_run(std::size_t task) {
        for (const Pass& pass : backwards_of(task)) --left_[static_cast<std::size_t>(pass.stage)];
    }

    // Those whose turn has come.
    void append_to(std::vector<Action>& list, std::size_t rank) {
        for (auto& due = due_[rank]; !due.empty() && left_[due.back()] == 0; due.pop_back())
            list.emplace_back(Reduce{{static_cast<std::int64_t>(due.back())}});
    }

private:
    std::vector<Pass> backwards_of(std::size_t task) const {
        return is_forward(tables_.task(task)) ? std::vector<Pass>{} : tables_.passes_of(task);
    }

    const Tables& tables_;
    std::vector<std::size_t> left_;              // backwards of each stage
    std::vector<std::vector<std::size_t>> due_;  // per rank: its stages, the next one last
};

std::vector<std::vector<Action>> lists_of(const Tables& tables, const std::vector<ActionStage>& stages,
                                          const Schedule& schedule, const Replay& replay,
                                          const std::vector<Recompute>& modes) {
    const Problem& problem = tables.step.problem;
    const Replayer replayer(problem);
    const auto sent = tables.by_task(true), received = tables.by_task(false);
    const auto order = by_start(replay, problem);
    Reductions reductions(tables, stages);
    std::vector<std::vector<Action>> lists(problem.ranks.size());
    for (std::size_t r = 0; r < lists.size(); ++r) reductions.append_to(lists[r], r);
    for (const std::size_t task : order) {
        const std::size_t rank = index(tables.rank_of(task));
        auto& list = lists[rank];
        for (const std::size_t t : received[task])
            if (index(tables.rank_of(tables.tensors[t].from)) != rank) list.emplace_back(Message{Message::Op::wait, t});
        const std::uint32_t pair = replayer.pair_of(task);
        const Recompute recompute = pair == Replayer::unpaired ? Recompute::none : modes[schedule.mode[pair]];
        for (const Pass& pass : tables.passes_of(task)) list.emplace_back(compute(tables, task, pass, recompute));
        for (const std::size_t t : sent[task]) {
            const std::size_t to = index(tables.rank_of(tables.tensors[t].to));
            if (to == rank) continue;
            list.emplace_back(message(Message::Op::send, t, to));
            lists[to].emplace_back(message(Message::Op::receive, t, rank));
        }
        reductions.has_run(task);
        reductions.append_to(list, rank);
    }
    return lists;
}

}  // namespace

ActionLists derive_actions(const StepProblem& step, const Schedule& schedule, const Replay& replay,
                           const std::vector<Recompute>& modes, const ReplicaData& data) {
    const Tables tables(step, data);
    ActionLists actions{step.problem.name,
                        data.replica,
                        data.replicas,
                        most_alive(step.problem, schedule, modes),
                        stages_of(tables),
                        {},
                        {},
                        data.gpus,
                        data.sequence_parallel,
                        data.shares};
    actions.ranks = lists_of(tables, actions.stages, schedule, replay, modes);
    for (const Handed& one : tables.tensors) actions.tensors.push_back(one.tensor);
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
