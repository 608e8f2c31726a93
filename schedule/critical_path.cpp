#include "pipeweaver/schedule/critical_path.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::schedule {

Causes::Causes(const Replayer& replayer, const Schedule& schedule)
    : replayer_(&replayer), before_(replayer.problem().tasks.size()) {
    for (const auto& order : schedule.order)
        for (std::size_t i = 1; i < order.size(); ++i) before_[index(order[i])] = order[i - 1];
}

std::optional<Cause> Causes::of(TaskId task, const TaskTimes& times) const {
    const std::int64_t start = times.start_ns[index(task)];
    if (const auto one = before(task); one && times.end_ns[index(*one)] == start) return Cause{*one, {}, true};
    for (const auto& arc : replayer_->predecessors(index(task)))
        if (times.end_ns[arc.task] + arc.lag_ns == start) return Cause{TaskId{arc.task}, Duration{arc.lag_ns}, false};
    return std::nullopt;
}

namespace {

// No task is shorter than 1 ns and no lag negative, so whatever waits for a task starts after it.
std::vector<std::size_t> latest_first(const std::vector<std::int64_t>& start_ns) {
    std::vector<std::size_t> tasks(start_ns.size());
    std::iota(tasks.begin(), tasks.end(), std::size_t{0});
    std::stable_sort(tasks.begin(), tasks.end(),
                     [&](std::size_t a, std::size_t b) { return start_ns[a] > start_ns[b]; });
    return tasks;
}

std::vector<std::int64_t> slack_of(const Replayer& replayer, const Schedule& schedule, const Timeline& times) {
    const Causes causes(replayer, schedule);
    std::vector<std::int64_t> latest_end(times.start_ns.size(), times.makespan.count());
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        if (!schedule.order[r].empty())
            latest_end[index(schedule.order[r].back())] -= replayer.problem().ranks[r].tail.count();
    std::vector<std::int64_t> slack(latest_end.size());
    for (const std::size_t task : latest_first(times.start_ns)) {
        for (const auto& arc : replayer.successors(task)) {
            const std::int64_t duration = times.end_ns[arc.task] - times.start_ns[arc.task];
            latest_end[task] = std::min(latest_end[task], latest_end[arc.task] - duration - arc.lag_ns);
        }
        if (const auto one = causes.before(TaskId{static_cast<std::uint32_t>(task)})) {
            const std::int64_t latest_start = latest_end[task] - (times.end_ns[task] - times.start_ns[task]);
            latest_end[index(*one)] = std::min(latest_end[index(*one)], latest_start);
        }
        slack[task] = latest_end[task] - times.end_ns[task];
    }
    return slack;
}

}  // namespace

Timeline timeline_of(const Replayer& replayer, const Schedule& schedule) {
    const Replay replay = replayer.replay(schedule);
    PIPEWEAVER_ASSERT(replay.outcome == Outcome::completed);
    Timeline times;
    times.makespan = replay.makespan;
    const auto costs = replayer.costs(schedule.mode);
    for (std::size_t task = 0; task < costs.size(); ++task) {
        times.start_ns.push_back(replay.start[task].count());
        times.end_ns.push_back(times.start_ns.back() + costs[task].duration.count());
    }
    times.slack_ns = slack_of(replayer, schedule, times);
    return times;
}

}  // namespace pipeweaver::schedule
