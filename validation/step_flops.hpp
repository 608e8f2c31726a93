// The FLOPs of a run as different sources count them.
#pragma once

#include "pipeweaver/validation/flops.hpp"
#include "validation/training_run.hpp"

namespace pipeweaver::validation {

/// `model_flops`: those that the emulation counts. Runs of several networks, of generators, of adapters and of packed
/// documents have no other count. Attention over whole squares is seq x seq pairs in every block that attends.
[[nodiscard]] StepFlops step_flops(const TrainingRun& run, double model_flops);

}  // namespace pipeweaver::validation
