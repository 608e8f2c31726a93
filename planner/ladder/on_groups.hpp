// The rung of modules on GPUs of their own.
#pragma once

#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/rung.hpp"

#include <optional>

namespace pipeweaver::planner {

/// The best split of the job's GPUs to groups of its modules, by `groups`, whose step its command prints. Modules
/// without work share the backbone's group. Few microbatches are priced to find the split, as many as by the command
/// for its step. Of a target with grids (MegatronMIMO's, launch/mimo_grids.cpp) the best that they say: an encoder of
/// images on one stage, whole samples on each of its replicas, states shared out. None: the model has one module at
/// work, or not those two, nothing fits, or options ask for what that command has not.
[[nodiscard]] std::optional<Rung> rung_on_groups(const Request& request);

}  // namespace pipeweaver::planner
