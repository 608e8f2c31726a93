// actions.json ("pipeweaver-actions/1"): what each rank does, in order: compute, send, receive, wait. Complete enough
// for an executor of another framework; docs/formats.md describes every field.
//
// Order        One global order, by the replay's start times. When a task is appended to its rank's list, the sends of
// its
//              results follow it there, and the receives are appended to the receivers' lists at that same moment; a
//              wait stands before the task that needs the tensor. Sends and receives between two ranks then come in the
//              same order on both sides, which cannot deadlock and needs no tags (they are given all the same).
#pragma once

#include "pipeweaver/emulator/replay.hpp"
#include "pipeweaver/emulator/step.hpp"

#include <string>
#include <vector>

namespace pipeweaver::emit {

/// Pre: `replay` is of `schedule` on `step.problem` and completed. `modes` names the pairs' modes.
[[nodiscard]] std::string actions(const emulator::StepProblem& step, const emulator::Schedule& schedule,
                                  const emulator::Replay& replay, const std::vector<emulator::Recompute>& modes);

/// Per rank: most bytes that wait in receive buffers at once under the order above.
[[nodiscard]] std::vector<Bytes> receive_buffers_needed(const emulator::StepProblem& step,
                                                        const emulator::Replay& replay);

}  // namespace pipeweaver::emit
