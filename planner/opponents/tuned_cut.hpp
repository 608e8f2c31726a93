// Cuts of known schedules tuned by hand, as engineers do it: layers moved between stages while the step gets shorter.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/time.hpp"

namespace pipeweaver::planner {

/// Adds to the opponents what comes of the fastest few that the job's target launches as one chain in its layout, each
/// under its own order and the recomputation that is fastest for the cut: judged on the sample, so none is faster on
/// every batch. Nothing where no move makes a step shorter. `time` is asked between moves; whether it left out none.
[[nodiscard]] bool add_tuned(Opponents& opponents, const Job& job, const Batch& batch, const Executor& execute,
                             const Time& time);

}  // namespace pipeweaver::planner
