// Steps whose tasks and ranks are not as fast as they were planned: the lists of a schedule, the same tasks from a
// queue of ready ones, and 1F1B, under the same draws.
//
// Draws        Every task's time by a factor of its own, every rank's by another; each step is drawn anew. Transfers,
//              tails and memory stay as they are.
// Determinism  random numbers by counter, times in whole nanoseconds: a function of the arguments but for the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/units.hpp"
#include "pipeweaver/emulator/uncertainty.hpp"
#include "pipeweaver/schedule/problem.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A rank that is slow: its tasks take longer by a share that each step draws, evenly from `least` to `most`.
struct SlowRank {
    std::optional<std::int64_t> rank{};  ///< none: each step draws one
    double least = 0, most = 0;          ///< 0.1: 10 % longer
};

struct JitterRequest {
    double task = emulator::Uncertainty{}.task;  ///< standard deviation of a task's factor, at most most_task_jitter
    double rank = emulator::Uncertainty{}.rank;  ///< of the logarithm of a rank's; not drawn where `slow` is given
    std::optional<SlowRank> slow{};              ///< in the first replica
    std::uint64_t seed = 1;
    std::size_t steps = 1000;  ///< >= 1
};

/// Factors of tasks are within 3.5 standard deviations of 1, and must be above 0.
inline constexpr double most_task_jitter = 0.25;

/// A replica's schedule. Both must outlive the call. Pre: its replay completes.
struct ReplicaLists {
    const schedule::Problem* problem = nullptr;
    const schedule::Schedule* schedule = nullptr;
};

/// Of makespans, nearest rank; `steady`: where nothing varies.
struct DrawnMakespans {
    Duration steady{}, p50{}, p90{}, p99{};

    friend bool operator==(const DrawnMakespans&, const DrawnMakespans&) = default;
};

/// What each rank's slowness adds.
inline constexpr std::array<int, 3> slowed_percents{10, 20, 30};

struct JitterReport {
    JitterRequest asked;
    // Of the first replica alone.
    DrawnMakespans lists, ready_queue;
    std::optional<DrawnMakespans> one_f_one_b{};  ///< none: it does not apply, or the lists are its own
    std::string why_no_1f1b{};
    std::vector<std::array<Duration, slowed_percents.size()>> slowed;  ///< per rank: makespan where it alone is slow
    // Of all replicas.
    std::size_t replicas = 1;
    double local_saves = 0;  ///< of the mean makespan, if replicas met at the very end alone (local steps)
    double stale_saves = 0;  ///< of it, if no rank waited for any other (stale steps)
};

/// Replays steps. Pre: at least one replica; a slow rank is one of the first's. Throws Error{input} where a drawn rank
/// does not exist.
[[nodiscard]] JitterReport jitter(std::span<const ReplicaLists> replicas, const JitterRequest& asked,
                                  const Executor& execute);

}  // namespace pipeweaver::planner
