// A published run as `pipeweaver emulate` takes it: model, cluster, layout, batch and recipe.
#pragma once

#include "pipeweaver/planner/emulate_options.hpp"
#include "validation/training_run.hpp"

#include <string>

namespace pipeweaver::validation {

/// What `emulate` is asked for.
[[nodiscard]] planner::EmulateOptions emulated_run(const TrainingRun& run);

/// The same as a command line.
[[nodiscard]] std::string command_of(const planner::EmulateOptions& options);

}  // namespace pipeweaver::validation
