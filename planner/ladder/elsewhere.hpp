// What the target launches in other layouts of the same GPUs.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pipeweaver::planner {

struct Elsewhere {
    std::vector<OpponentWay> ways{};  ///< the fastest way of each of the best few layouts, cut on the batch
    std::size_t layouts = 0;          ///< that fit, the job's own among them
    bool is_whole = false;            ///< no layout was left out for lack of time
};

/// Judges all layouts of the job's GPUs by known schedules, unless its own was chosen among them, and runs what the
/// target launches in the best of them but its own: for the same samples. `cp`: context parallel GPUs of all, or none:
/// any. `time` is asked between layouts.
[[nodiscard]] Elsewhere launched_elsewhere(const Job& job, const Batch& batch, const std::optional<std::int64_t>& cp,
                                           const Executor& execute, const Time& time);

/// The request in the layout of a way that was found so: its batch is what partitions of it are cut on.
[[nodiscard]] Request moved_to(const Way& way, const Request& request);

}  // namespace pipeweaver::planner
