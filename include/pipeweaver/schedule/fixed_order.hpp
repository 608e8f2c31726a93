// One schedule replayed many times with other durations and lags: robustness asks what happens if the costs were wrong.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::schedule {

/// A schedule as flat arrays, in an order in which every task comes after all that it waits for. Only times are
/// replayed: memory depends on the order alone.
class FixedOrder {
public:
    /// Pre: the schedule's replay on `replayer` completes. Keeps nothing of its arguments.
    FixedOrder(const Replayer& replayer, const Schedule& schedule);

    /// The durations under the problem's own costs, per task.
    std::span<const std::int64_t> durations() const { return durations_; }

    /// Makespan if task i lasts duration_ns[i] and every lag is `lag_factor` times as long; tails stay. `end_ns` is a
    /// buffer that later calls may use again. Equal to the replay of a problem with these durations and lags. Pre: one
    /// duration per task; lag_factor >= 0. Time O(tasks + edges).
    Duration makespan(std::span<const std::int64_t> duration_ns, std::vector<std::int64_t>& end_ns,
                      double lag_factor = 1) const;

private:
    std::vector<std::int64_t> durations_;
    std::vector<std::uint32_t> sequence_;  // tasks
    std::vector<std::uint32_t> first_;     // of each position's arcs
    std::vector<Replayer::Arc> before_;    // edges, and the task before on the same rank
    std::vector<Replayer::Arc> last_;      // of each rank, with its tail as lag
};

}  // namespace pipeweaver::schedule
