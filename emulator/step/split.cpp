#include "pipeweaver/emulator/split.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

using namespace schedule;

namespace {

void set_letter(Task& task, TaskKind kind) {
    task.kind = kind;
    if (!task.label.empty()) task.label.back() = letter(kind);
}

TaskId add_weight(StepProblem& step, TaskId input, const SplitBackward& split) {
    const std::size_t from = index(input);
    const TaskId weight{static_cast<std::uint32_t>(step.problem.tasks.size())};
    Task task = step.problem.tasks[from];
    set_letter(task, TaskKind::weight_gradient);
    step.problem.tasks.push_back(std::move(task));
    step.problem.edges.push_back({input, weight, Duration{0}});
    step.cost.push_back(split.weight);
    step.recompute.push_back(0);
    step.mix.push_back(split.weight_mix);
    step.unit.push_back(step.unit[from]);
    step.chain.push_back(step.chain[from]);
    return weight;
}

// Per task: its W, or nothing.
std::vector<std::optional<TaskId>> weights_of(const Problem& problem) {
    std::vector<std::optional<TaskId>> weight(problem.tasks.size());
    for (const Pair& pair : problem.pairs) weight[index(pair.backward)] = pair.weight;
    return weight;
}

}  // namespace

SplitChoice splittable(const StepProblem& step) {
    SplitChoice choice;
    for (const SplitBackward& split : step.split) choice.push_back(!split.modes.empty());
    return choice;
}

BuiltStep split_backwards(const StepProblem& step, const SplitChoice& choice) {
    PIPEWEAVER_ASSERT(choice.size() == step.problem.pairs.size());
    StepProblem result = step;
    for (std::size_t k = 0; k < choice.size(); ++k) {
        if (!choice[k]) continue;
        const SplitBackward& split = step.split[k];
        Pair& pair = result.problem.pairs[k];
        PIPEWEAVER_ASSERT(!split.modes.empty() && !pair.weight);
        const std::size_t input = index(pair.backward);
        set_letter(result.problem.tasks[input], TaskKind::input_gradient);
        result.cost[input] = split.input;
        pair.weight = add_weight(result, pair.backward, split);
        pair.modes = split.modes;
        const auto costs = costs_in(pair, pair.modes.front());
        apply(result.problem.tasks[index(pair.forward)], costs[0]);
        apply(result.problem.tasks[input], costs[1]);
        apply(result.problem.tasks[index(*pair.weight)], costs[2]);
    }
    return checked(std::move(result));
}

Schedule with_weights(const Problem& split, const Schedule& whole) {
    const auto weight = weights_of(split);
    Schedule schedule{{}, whole.mode};
    for (const auto& order : whole.order) {
        auto& mine = schedule.order.emplace_back();
        for (const TaskId task : order) {
            mine.push_back(task);
            if (weight[index(task)]) mine.push_back(*weight[index(task)]);
        }
    }
    return schedule;
}

std::vector<bool> joinable(const Problem& problem, const Schedule& schedule, const Replay& replay) {
    const auto kind = [&](TaskId task) { return problem.tasks[index(task)].kind; };
    std::vector<std::optional<TaskId>> weight(problem.tasks.size());
    for (const Edge& edge : problem.edges)
        if (kind(edge.from) == TaskKind::input_gradient && kind(edge.to) == TaskKind::weight_gradient)
            weight[index(edge.from)] = edge.to;
    std::vector<bool> whole(problem.tasks.size(), false);
    for (const auto& order : schedule.order)
        for (std::size_t i = 0; i + 1 < order.size(); ++i)
            whole[index(order[i])] = weight[index(order[i])] == order[i + 1];
    const auto costs = Replayer(problem).costs(schedule.mode);
    for (const Edge& edge : problem.edges) {
        const auto w = weight[index(edge.from)];
        if (!w || *w == edge.to) continue;
        const Duration end = replay.start[index(*w)] + costs[index(*w)].duration;
        if (replay.start[index(edge.to)] < end + edge.lag) whole[index(edge.from)] = false;
    }
    return whole;
}

SplitChoice needed(const Problem& split, const Schedule& schedule, const Replay& replay) {
    const auto whole = joinable(split, schedule, replay);
    SplitChoice choice;
    for (const Pair& pair : split.pairs) choice.push_back(pair.weight && !whole[index(pair.backward)]);
    return choice;
}

Schedule merged(const Problem& split, const Schedule& schedule, const Problem& kept) {
    std::vector<std::optional<TaskId>> becomes;
    for (std::uint32_t i = 0; i < split.tasks.size(); ++i) becomes.emplace_back(TaskId{i});
    for (std::size_t k = 0; k < split.pairs.size(); ++k)
        if (split.pairs[k].weight) becomes[index(*split.pairs[k].weight)] = kept.pairs[k].weight;
    Schedule result{{}, schedule.mode};
    for (const auto& order : schedule.order) {
        auto& mine = result.order.emplace_back();
        for (const TaskId task : order)
            if (becomes[index(task)]) mine.push_back(*becomes[index(task)]);
    }
    return result;
}

}  // namespace pipeweaver::emulator
