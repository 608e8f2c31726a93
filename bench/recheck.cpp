#include "bench/recheck.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pipeweaver::bench {

namespace {

using schedule::Problem;
using schedule::Schedule;
using schedule::TaskCost;

// Per task under the schedule's modes.
std::vector<TaskCost> costs_of(const Problem& problem, const Schedule& schedule) {
    std::vector<TaskCost> costs;
    for (const auto& task : problem.tasks) costs.push_back({task.duration, task.acquire, task.release});
    for (std::size_t k = 0; k < problem.pairs.size(); ++k) {
        const auto& pair = problem.pairs[k];
        const auto& mode = pair.modes.at(schedule.mode.at(k));
        const Bytes kept = pair.weight ? mode.kept : Bytes{};
        costs[index(pair.forward)] = {mode.forward, mode.held + mode.forward_transient, mode.forward_transient};
        costs[index(pair.backward)] = {mode.backward, mode.transient, mode.held + mode.transient - kept};
        if (pair.weight) costs[index(*pair.weight)] = {mode.weight, Bytes{}, kept};
    }
    return costs;
}

std::string wrong_order(const Problem& problem, const Schedule& schedule) {
    std::vector<int> seen(problem.tasks.size(), 0);
    if (schedule.order.size() != problem.ranks.size()) return "the orders are not one per rank";
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
        for (const TaskId task : schedule.order[rank]) {
            if (index(problem.tasks.at(index(task)).rank) != rank)
                return fmt::format("task {} is not on rank {}", index(task), rank);
            ++seen[index(task)];
        }
    for (std::size_t task = 0; task < seen.size(); ++task)
        if (seen[task] != 1) return fmt::format("task {} runs {} times", task, seen[task]);
    return {};
}

std::string wrong_memory(const Problem& problem, const Schedule& schedule, const std::vector<TaskCost>& costs) {
    for (std::size_t rank = 0; rank < problem.ranks.size(); ++rank) {
        const auto& limits = problem.ranks[rank];
        Bytes held = limits.base;
        for (const TaskId task : schedule.order[rank]) {
            held += costs[index(task)].acquire;
            if (limits.capacity && held > *limits.capacity)
                return fmt::format("rank {} exceeds its memory at task {}", rank, index(task));
            held -= costs[index(task)].release;
            if (held < limits.base) return fmt::format("rank {} gives back too much at task {}", rank, index(task));
        }
    }
    return {};
}

// Ends of all tasks: ranks take turns to run what they can until all is done or nothing can go on.
std::optional<std::vector<Duration>> ends_of(const Problem& problem, const Schedule& schedule,
                                             const std::vector<TaskCost>& costs) {
    std::vector<std::vector<const schedule::Edge*>> into(problem.tasks.size());
    for (const auto& edge : problem.edges) into[index(edge.to)].push_back(&edge);
    std::vector<Duration> end(problem.tasks.size(), Duration{-1});
    std::vector<std::size_t> next(problem.ranks.size(), 0);
    std::size_t left = problem.tasks.size();
    for (bool moved = true; moved && left > 0;) {
        moved = false;
        for (std::size_t rank = 0; rank < problem.ranks.size(); ++rank)
            for (const auto& order = schedule.order[rank]; next[rank] < order.size(); ++next[rank], --left) {
                const std::size_t task = index(order[next[rank]]);
                Duration start = next[rank] == 0 ? Duration{} : end[index(order[next[rank] - 1])];
                bool waits = false;
                for (const auto* edge : into[task]) {
                    waits = waits || end[index(edge->from)] < Duration{};
                    start = std::max(start, end[index(edge->from)] + edge->lag);
                }
                if (waits) break;
                end[task] = start + costs[task].duration;
                moved = true;
            }
    }
    if (left > 0) return std::nullopt;
    return end;
}

}  // namespace

std::string refuted(const Problem& problem, const Schedule& schedule, Duration makespan) {
    if (auto why = wrong_order(problem, schedule); !why.empty()) return why;
    const auto costs = costs_of(problem, schedule);
    if (auto why = wrong_memory(problem, schedule, costs); !why.empty()) return why;
    const auto end = ends_of(problem, schedule, costs);
    if (!end) return "tasks wait for each other for ever";
    Duration latest{};
    for (std::size_t rank = 0; rank < problem.ranks.size(); ++rank)
        if (!schedule.order[rank].empty())
            latest = std::max(latest, (*end)[index(schedule.order[rank].back())] + problem.ranks[rank].tail);
    if (latest != makespan) return fmt::format("it takes {}, not {}", human(latest), human(makespan));
    return {};
}

void require_right(const schedule::Problem& problem, const std::string& who, const schedule::Schedule& schedule,
                   Duration makespan) {
    if (const auto why = refuted(problem, schedule, makespan); !why.empty())
        fail(ErrorKind::limit, "{}: the schedule of '{}' is wrong: {}", problem.name, who, why);
}

}  // namespace pipeweaver::bench
