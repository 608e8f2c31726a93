// torch-csv: the schedule as torch.distributed.pipelining reads it (_PipelineScheduleRuntime._load_csv, compute_only).
//
// One row a rank, cells in execution order: STAGE F|I|B|W MICROBATCH. An I directly followed by its W becomes B
// where that changes no start, since the runtime does not merge them; else B would send its gradient later.
#pragma once

#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::emit {

struct TorchFiles {
    std::string csv;       ///< schedule.csv
    std::string comms;     ///< schedule.comms.csv: with every message, by torch_comms.cpp
    std::string schedule;  ///< schedule.json ("pipeweaver-torch/1")
};

/// Why PyTorch cannot run the problem or this order of it, "torch-csv: " with the rule and the task; none: it can.
[[nodiscard]] std::optional<std::string> why_no_torch_csv(const schedule::Problem& problem,
                                                          const schedule::Schedule& schedule);

/// Throws Error{limit} why_no_torch_csv().
[[nodiscard]] TorchFiles torch_csv(const schedule::Problem& problem, const schedule::Schedule& schedule);

// schedule.comms.csv: the schedule with every message, as _PipelineScheduleRuntime._load_csv reads it with
// format="compute_comms". PyTorch runs such a file as it stands and checks nothing of it, so it is checked here.
//
// Messages     SEND_F, SEND_B behind the pass that makes the tensor; RECV_F, RECV_B at that moment in the receiver's
//              row. All come from one global order, so no ranks wait for each other, whatever the transport. None
//              between stages of one rank.
// Gradients    REDUCE_GRAD behind the last backward of each stage: only there are gradients scaled and reduced.
// FSDP2        UNSHARD before a stage is used, RESHARD when it is not among the next three: actions that do nothing for
//              a stage that is no FSDPModule.
/// The file. `whole` says per task which I is written as B, with its W; see emulator::joinable(). Pre: PyTorch runs the
/// schedule (why_no_torch_csv()). Throws Error{limit} where the messages could not be run.
[[nodiscard]] std::string torch_comms(const schedule::Problem& problem, const schedule::Schedule& schedule,
                                      const std::vector<bool>& whole);

/// Of a stage, in microbatches: those whose activation (or output's gradient) may have come from another rank while
/// their last use, B or W, is still to end. 0 where the neighbour is on the same rank, or there is none.
struct BuffersInUse {
    std::int64_t forward = 0, backward = 0;
};

/// The most of each stage, whatever the passes take and as early as receives are posted: a message may be there as soon
/// as its sender depends on nothing that the receiver has yet to do. A ring of so many buffers is enough, where PyTorch
/// allocates one for each microbatch. Pre: a chain of stages 0, 1, ... as PyTorch runs it; `replay` is of `schedule`
/// and completed. Takes time O(ranks * tasks).
[[nodiscard]] std::vector<BuffersInUse> buffers_in_use(const schedule::Problem& problem,
                                                       const schedule::Schedule& schedule,
                                                       const schedule::Replay& replay);

}  // namespace pipeweaver::emit
