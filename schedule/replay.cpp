#include "pipeweaver/schedule/replay.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::schedule {

namespace {

std::uint32_t number(TaskId task) { return static_cast<std::uint32_t>(task); }

// Arcs grouped by one end: first[i] .. first[i + 1] are those of task i.
void group(std::size_t tasks, const std::vector<Edge>& edges, std::span<const Duration> lags, bool by_target,
           std::vector<std::uint32_t>& first, std::vector<Replayer::Arc>& arcs) {
    first.assign(tasks + 1, 0);
    for (const Edge& edge : edges) ++first[index(by_target ? edge.to : edge.from) + 1];
    for (std::size_t i = 0; i < tasks; ++i) first[i + 1] += first[i];
    arcs.resize(edges.size());
    auto next = first;
    for (std::size_t e = 0; e < edges.size(); ++e) {
        const Edge& edge = edges[e];
        const std::size_t here = index(by_target ? edge.to : edge.from);
        const Duration lag = lags.empty() ? edge.lag : lags[e];
        arcs[next[here]++] = {number(by_target ? edge.from : edge.to), lag.count()};
    }
}

}  // namespace

Replayer::Replayer(const Problem& problem, std::span<const Duration> lags)
    : problem_(&problem), pair_of_(problem.tasks.size(), unpaired), role_(problem.tasks.size()) {
    group(problem.tasks.size(), problem.edges, lags, false, first_, arcs_);
    group(problem.tasks.size(), problem.edges, lags, true, back_first_, back_arcs_);
    for (std::size_t k = 0; k < problem.pairs.size(); ++k) {
        const Pair& pair = problem.pairs[k];
        const auto enter = [&](TaskId task, std::uint8_t role) {
            pair_of_[index(task)] = static_cast<std::uint32_t>(k);
            role_[index(task)] = role;
        };
        enter(pair.forward, 0);
        enter(pair.backward, 1);
        if (pair.weight) enter(*pair.weight, 2);
    }
}

TaskCost Replayer::cost(std::size_t task, std::uint32_t mode) const {
    if (pair_of_[task] == unpaired) {
        const Task& own = problem_->tasks[task];
        return {own.duration, own.acquire, own.release};
    }
    const Pair& pair = problem_->pairs[pair_of_[task]];
    return costs_in(pair, pair.modes[mode])[role_[task]];
}

std::vector<TaskCost> Replayer::costs(std::span<const std::uint32_t> mode) const {
    std::vector<TaskCost> all(problem_->tasks.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = cost(i, pair_of_[i] == unpaired ? 0 : mode[pair_of_[i]]);
    return all;
}

namespace {

// Memory of a rank along its order. Sets outcome, task and bytes at the first task at which it goes wrong.
Bytes peak_along(const Rank& rank, const std::vector<TaskId>& order, const std::vector<TaskCost>& costs,
                 Replay& result) {
    Bytes peak = rank.base;
    walk_memory(rank, order, costs, [&](TaskId task, Bytes during, Bytes after) {
        peak = std::max(peak, during);
        if (rank.capacity && during > *rank.capacity && result.outcome == Outcome::completed) {
            result.outcome = Outcome::out_of_memory;
            result.stuck_at = task;
            result.short_by = during - *rank.capacity;
        }
        if (after < rank.base && result.outcome == Outcome::completed) {
            result.outcome = Outcome::underflow;
            result.stuck_at = task;
            result.short_by = rank.base - after;
        }
    });
    return peak;
}

// The first task that a rank never comes to.
Replay stuck(const Schedule& schedule, const std::vector<std::size_t>& next) {
    Replay result;
    result.outcome = Outcome::deadlock;
    for (std::size_t r = 0; r < next.size() && !result.stuck_at; ++r)
        if (next[r] < schedule.order[r].size()) result.stuck_at = schedule.order[r][next[r]];
    return result;
}

}  // namespace

Replay Replayer::replay(const Schedule& schedule) const {
    const auto all_costs = costs(schedule.mode);
    const std::size_t ranks = problem_->ranks.size();
    Replay result;
    for (std::size_t r = 0; r < ranks; ++r)
        result.peak.push_back(peak_along(problem_->ranks[r], schedule.order[r], all_costs, result));
    if (result.outcome != Outcome::completed) return result;

    // Ranks take turns, each as far as it gets; a task whose last predecessor ends wakes its rank.
    const std::size_t tasks = problem_->tasks.size();
    std::vector<std::int64_t> ready(tasks, 0), clock(ranks, 0);
    std::vector<std::uint32_t> missing(tasks);
    for (std::size_t i = 0; i < tasks; ++i) missing[i] = static_cast<std::uint32_t>(predecessors(i).size());
    std::vector<std::size_t> next(ranks, 0);
    std::vector<std::size_t> awake(ranks);
    for (std::size_t r = 0; r < ranks; ++r) awake[r] = ranks - 1 - r;
    result.start.resize(tasks);
    std::size_t done = 0;
    while (!awake.empty()) {
        const std::size_t r = awake.back();
        awake.pop_back();
        const auto& order = schedule.order[r];
        while (next[r] < order.size() && missing[index(order[next[r]])] == 0) {
            const std::size_t task = index(order[next[r]++]);
            const std::int64_t start = std::max(clock[r], ready[task]);
            const std::int64_t end = start + all_costs[task].duration.count();
            result.start[task] = Duration{start};
            clock[r] = end;
            ++done;
            for (const Arc& arc : successors(task)) {
                ready[arc.task] = std::max(ready[arc.task], end + arc.lag_ns);
                if (--missing[arc.task] > 0) continue;
                const std::size_t other = index(problem_->tasks[arc.task].rank);
                if (other != r && next[other] < schedule.order[other].size() &&
                    index(schedule.order[other][next[other]]) == arc.task)
                    awake.push_back(other);
            }
        }
    }
    if (done < tasks) return stuck(schedule, next);
    for (std::size_t r = 0; r < ranks; ++r)
        if (!schedule.order[r].empty())
            result.makespan = std::max(result.makespan, Duration{clock[r]} + problem_->ranks[r].tail);
    return result;
}

Replay replay(const Problem& problem, const Schedule& schedule) { return Replayer(problem).replay(schedule); }

std::string why_it_fails(const Problem& problem, const Replay& replay) {
    PIPEWEAVER_ASSERT(replay.outcome != Outcome::completed);
    const std::size_t task = index(*replay.stuck_at);
    const std::string at =
        fmt::format("rank {}: task {} '{}'", index(problem.tasks[task].rank), task, problem.tasks[task].label);
    switch (replay.outcome) {
        case Outcome::out_of_memory:
            return fmt::format("{} does not fit: {} short", at, human(replay.short_by));
        case Outcome::underflow:
            return fmt::format("{} gives back {} bytes more than were taken", at, replay.short_by.count);
        default:
            return fmt::format("deadlock: {} waits for ever under this order", at);
    }
}

}  // namespace pipeweaver::schedule
