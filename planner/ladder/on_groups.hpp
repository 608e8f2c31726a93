// The rung of modules on GPUs of their own.
#pragma once

#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/rung.hpp"

#include <optional>

namespace pipeweaver::planner {

/// The best split of the job's GPUs to groups of its modules, by `groups`, whose step its command prints. Modules
/// without work share the backbone's group. Few microbatches are priced to find the split, as many as by the command
/// for its step; of a target with grids the best that they say (ask_for_launched()). None: the model has one module at
/// work, or others than grids are for, nothing fits, or options ask for what that command has not.
[[nodiscard]] std::optional<Rung> rung_on_groups(const Request& request);

}  // namespace pipeweaver::planner
