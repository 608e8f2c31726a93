// torch-csv: the schedule as torch.distributed.pipelining reads it (_PipelineScheduleRuntime._load_csv, compute_only).
//
// One row a rank, cells in execution order: STAGE F|I|B|W MICROBATCH. An I directly followed by its W becomes B
// where that changes no start, since the runtime does not merge them; else B would send its gradient later.
#pragma once

#include "pipeweaver/schedule/solution.hpp"

#include <optional>
#include <string>

namespace pipeweaver::emit {

struct TorchFiles {
    std::string csv;       ///< schedule.csv
    std::string comms;     ///< schedule.comms.csv: with every message, see torch_comms.hpp
    std::string schedule;  ///< schedule.json ("pipeweaver-torch/1")
};

/// Why PyTorch cannot run the problem or this order of it, "torch-csv: " with the rule and the task; none: it can.
[[nodiscard]] std::optional<std::string> why_no_torch_csv(const schedule::Problem& problem,
                                                          const schedule::Schedule& schedule);

/// Throws Error{limit} why_no_torch_csv().
[[nodiscard]] TorchFiles torch_csv(const schedule::Problem& problem, const schedule::Schedule& schedule);

}  // namespace pipeweaver::emit
