// schedule.comms.csv: the schedule with every message, as _PipelineScheduleRuntime._load_csv reads it with
// format="compute_comms". PyTorch runs such a file as it stands and checks nothing of it, so it is checked here.
//
// Messages     SEND_F, SEND_B behind the pass that makes the tensor; RECV_F, RECV_B at that moment in the receiver's
//              row. All come from one global order, so no ranks wait for each other, whatever the transport. None
//              between stages of one rank.
// Gradients    REDUCE_GRAD behind the last backward of each stage: only there are gradients scaled and reduced.
// FSDP2        UNSHARD before a stage is used, RESHARD when it is not among the next three: actions that do nothing for
//              a stage that is no FSDPModule.
#pragma once

#include "pipeweaver/schedule/solution.hpp"

#include <string>
#include <vector>

namespace pipeweaver::emit {

/// The file. `whole` says per task which I is written as B, with its W; see emulator::joinable(). Pre: PyTorch runs the
/// schedule (why_no_torch_csv()). Throws Error{limit} where the messages could not be run.
[[nodiscard]] std::string torch_comms(const schedule::Problem& problem, const schedule::Schedule& schedule,
                                      const std::vector<bool>& whole);

}  // namespace pipeweaver::emit
