// Chrome trace: opens in Perfetto and chrome://tracing.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::emit {

/// What a plan knows of a replica's step beside the schedule.
struct TraceKnown {
    std::optional<std::size_t> replica{};  ///< none: processes are called by their rank alone
    Duration optimizer{};                  ///< after all ranks have met
    std::vector<std::string> recompute{};  ///< per task: what its backward computes again; none, or empty: not said
};

/// The trace of a replayed schedule has a process for each rank: its tasks on one thread; what follows them, the
/// reduction of gradients and the optimizer, on another; transfers that take time on threads of the rank that receives
/// them, as many as overlap; its memory as a counter. An arrow leads from each task to those of other ranks that take
/// its tensors, through the transfer. No two events of a thread overlap; the last ends with the step. Task names are
/// those that PyTorch's runtime gives its own actions ("PP:0F3"; with sub-microbatches "PP:0F3.1"), so that a
/// prediction and a recorded run join by name. Time stamps are in microseconds with three decimals. Pre: `replay` is of
/// `schedule` and completed.
[[nodiscard]] std::string chrome_trace(const schedule::Replayer& replayer, const schedule::Schedule& schedule,
                                       const schedule::Replay& replay, const TraceKnown& known = {});

}  // namespace pipeweaver::emit
