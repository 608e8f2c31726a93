// An emulated step as JSON, as a table, and as a trace of kernels.
#pragma once

#include "pipeweaver/planner/emulate.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace pipeweaver::emit {

/// emulation.json ("pipeweaver-emulation/1", docs/formats.md). `base` is the same step without what-if factors; null:
/// there are none. Equal emulations give equal JSON; what was measured is not in it.
[[nodiscard]] nlohmann::ordered_json emulation_json(const planner::EmulationRequest& request,
                                                    const planner::Emulation& emulation,
                                                    const planner::Emulation* base);

/// The emulation for a person: step, MFU, tokens per second, the change against `base`, where the time of the slowest
/// replica's ranks goes, memory of the fullest, the critical path, what the costs rest on and what was assumed. Where
/// there are many ranks, the first, the last and the extreme ones are shown.
[[nodiscard]] std::string emulation_table(const planner::EmulationRequest& request, const planner::Emulation& emulation,
                                          const planner::Emulation* base);

/// Steps that vary: the `jitter` of emulation.json and of `replay --json`, and as text.
[[nodiscard]] nlohmann::ordered_json jitter_json(const planner::JitterReport& report);
[[nodiscard]] std::string jitter_text(const planner::JitterReport& report);

/// A rank's kernels.
struct RankKernels {
    std::int64_t rank = 0;
    std::vector<emulator::TracedKernel> kernels;
};

/// Chrome trace of chosen ranks of `replica`: a process for each rank, a thread for each of its streams, kernels as
/// events, memory as a counter. Time stamps in microseconds with three decimals.
[[nodiscard]] std::string kernel_trace(const emulator::ReplicaEmulation& replica,
                                       const std::vector<RankKernels>& ranks);

/// Chrome trace of the passes of all ranks of a replica, as plans have it. Pre: the schedule completes.
[[nodiscard]] std::string pass_trace(const planner::EmulatedStep& step, const emulator::ReplicaEmulation& replica);

}  // namespace pipeweaver::emit
