// Chrome trace of a replayed schedule: opens in Perfetto and chrome://tracing.
//
// A process for each rank, its tasks on one thread, its memory as a counter. Task names are those that PyTorch's
// runtime gives its own actions ("PP:0F3"; with sub-microbatches "PP:0F3.1"), so that a prediction and a recorded run
// join by name.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <string>

namespace pipeweaver::emit {

/// Pre: `replay` is of `schedule` and completed. Time stamps in microseconds with three decimals.
[[nodiscard]] std::string chrome_trace(const schedule::Replayer& replayer, const schedule::Schedule& schedule,
                                       const schedule::Replay& replay);

}  // namespace pipeweaver::emit
