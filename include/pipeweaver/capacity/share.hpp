// The GPUs of a cluster shared out to trainings that all run at once, from now to their ends.
//
// Objective    the least sum of weight x time, time = tokens / speed on the GPUs that a job has: a multiple-choice
//              knapsack (Aryl, arXiv 2202.07896, with the time itself in place of its reduction). Loans and arrivals do
//              not count here, and nobody takes over the GPUs of who is done: that is the queue's (queue.hpp).
// Waiting      where the smallest GPU counts of all jobs do not fit, as little weight waits as can be, then the time of
//              the others is least.
#pragma once

#include "pipeweaver/capacity/jobs.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::capacity {

struct Shares {
    /// Index into each job's speeds; nothing: it waits.
    std::vector<std::optional<std::size_t>> speed_of;
    std::int64_t gpus = 0;           ///< that are given away
    std::int64_t smallest_gpus = 0;  ///< what all jobs need at least
    Wide weighted = 0;               ///< thousandths x nanoseconds of the jobs that run

    bool all_run() const;
};

/// Throws Error{limit} where the knapsack is too large.
[[nodiscard]] Shares share_out(const SharedCluster& cluster);

}  // namespace pipeweaver::capacity
