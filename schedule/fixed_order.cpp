#include "pipeweaver/schedule/fixed_order.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::schedule {

FixedOrder::FixedOrder(const Replayer& replayer, const Schedule& schedule) {
    const Replay replay = replayer.replay(schedule);
    PIPEWEAVER_ASSERT(replay.outcome == Outcome::completed);
    const Problem& problem = replayer.problem();
    for (const TaskCost& cost : replayer.costs(schedule.mode)) durations_.push_back(cost.duration.count());

    // No task is shorter than 1 ns, so whatever a task waits for starts before it.
    sequence_.resize(problem.tasks.size());
    std::iota(sequence_.begin(), sequence_.end(), 0U);
    std::stable_sort(sequence_.begin(), sequence_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return replay.start[a] < replay.start[b]; });

    std::vector<std::uint32_t> rank_before(problem.tasks.size(), Replayer::unpaired);
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& order = schedule.order[r];
        for (std::size_t i = 1; i < order.size(); ++i)
            rank_before[index(order[i])] = static_cast<std::uint32_t>(order[i - 1]);
        if (!order.empty()) last_.push_back({static_cast<std::uint32_t>(order.back()), problem.ranks[r].tail.count()});
    }
    for (const std::uint32_t task : sequence_) {
        first_.push_back(static_cast<std::uint32_t>(before_.size()));
        for (const auto& arc : replayer.predecessors(task)) before_.push_back(arc);
        if (rank_before[task] != Replayer::unpaired) before_.push_back({rank_before[task], 0});
    }
    first_.push_back(static_cast<std::uint32_t>(before_.size()));
}

Duration FixedOrder::makespan(std::span<const std::int64_t> duration_ns, std::vector<std::int64_t>& end_ns,
                              double lag_factor) const {
    const auto lag = [&](const Replayer::Arc& arc) -> std::int64_t {
        return arc.lag_ns == 0 ? 0 : std::llround(static_cast<double>(arc.lag_ns) * lag_factor);
    };
    end_ns.resize(sequence_.size());
    for (std::size_t i = 0; i < sequence_.size(); ++i) {
        std::int64_t start = 0;
        for (std::uint32_t a = first_[i]; a < first_[i + 1]; ++a)
            start = std::max(start, end_ns[before_[a].task] + lag(before_[a]));
        end_ns[sequence_[i]] = start + duration_ns[sequence_[i]];
    }
    std::int64_t makespan = 0;
    for (const auto& arc : last_) makespan = std::max(makespan, end_ns[arc.task] + arc.lag_ns);
    return Duration{makespan};
}

}  // namespace pipeweaver::schedule
