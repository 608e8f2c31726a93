// From a model cut into stages, and a batch cut into units, to the schedule problem of one replica's step.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"

namespace pipeweaver::emulator {

/// Builds the problem; the shortage is of the first rank whose static memory exceeds its device, else of the first task
/// that does not fit its rank even alone. Throws what the cost database throws.
[[nodiscard]] BuiltStep build_step(const StepInput& input);

}  // namespace pipeweaver::emulator
