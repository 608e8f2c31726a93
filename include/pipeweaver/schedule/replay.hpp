// Replays a schedule: exact times and memory. The one place that knows when a task of a schedule starts.
//
// Units        Duration is integer nanoseconds, Bytes is bytes.
// Threads      any number of calls at once on one Replayer.
// Determinism  equal arguments give an equal Replay.
#pragma once

#include "pipeweaver/schedule/solution.hpp"

#include <span>

namespace pipeweaver::schedule {

/// How a replay ended. All but the first are answers, not errors: a search meets them often.
enum class Outcome {
    completed,
    out_of_memory,  ///< a rank would hold more than its capacity
    underflow,      ///< a rank would give back more than was taken
    deadlock        ///< tasks wait for each other under this order
};

struct Replay {
    Outcome outcome = Outcome::completed;
    Duration makespan{};             ///< latest (end of a rank's last task + its tail); 0 unless completed
    std::vector<Duration> start;     ///< per task; empty unless completed
    std::vector<Bytes> peak;         ///< per rank, base included; empty for a deadlock
    std::optional<TaskId> stuck_at;  ///< the task at which it went wrong; the first by (rank, position)
    Bytes short_by;                  ///< out_of_memory: bytes missing for `stuck_at`

    friend bool operator==(const Replay&, const Replay&) = default;
};

/// A problem as flat arrays, made once and replayed many times. Keeps a reference: the problem must outlive it.
class Replayer {
public:
    /// `lags`: one for each edge, in place of the problem's own; empty: the problem's own.
    explicit Replayer(const Problem& problem, std::span<const Duration> lags = {});

    const Problem& problem() const { return *problem_; }

    /// An edge as seen from one end.
    struct Arc {
        std::uint32_t task;
        std::int64_t lag_ns;
    };
    std::span<const Arc> successors(std::size_t task) const {
        return {arcs_.data() + first_[task], arcs_.data() + first_[task + 1]};
    }
    std::span<const Arc> predecessors(std::size_t task) const {
        return {back_arcs_.data() + back_first_[task], back_arcs_.data() + back_first_[task + 1]};
    }

    /// Per task: index into Problem::pairs, or `unpaired`.
    static constexpr std::uint32_t unpaired = 0xffffffff;
    std::uint32_t pair_of(std::size_t task) const { return pair_of_[task]; }

    /// Cost of a task when its pair (if any) is in mode `mode`.
    TaskCost cost(std::size_t task, std::uint32_t mode) const;

    /// Cost of every task under the given modes. Pre: mode.size() == problem.pairs.size().
    std::vector<TaskCost> costs(std::span<const std::uint32_t> mode) const;

    /// Pre: `schedule` is a schedule of the problem (every task once, on its rank; modes exist).
    /// Earliest starts under the order; memory by prefix sums along each rank's order. Time O(tasks + edges).
    Replay replay(const Schedule& schedule) const;

private:
    const Problem* problem_;
    std::vector<std::uint32_t> first_, back_first_;
    std::vector<Arc> arcs_, back_arcs_;
    std::vector<std::uint32_t> pair_of_;
    std::vector<std::uint8_t> role_;  // 0 forward, 1 backward, 2 weight; meaningless where unpaired
};

/// Replays one schedule of `problem`; see Replayer::replay.
[[nodiscard]] Replay replay(const Problem& problem, const Schedule& schedule);

/// Why a schedule cannot run, for a person: "rank 0: task 3 'F1' does not fit: 2 GiB short". Pre: the replay did not
/// complete.
[[nodiscard]] std::string why_it_fails(const Problem& problem, const Replay& replay);

}  // namespace pipeweaver::schedule
