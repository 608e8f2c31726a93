// Modules on GPUs of their own as a script that sets MegatronMIMO's grids.
//
// Source       Megatron-Bridge 067f987d, examples/megatron_mimo/qwen35_vl/slurm_sft.sh, which takes the variables.
#pragma once

#include "pipeweaver/groups/placing.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <string>

namespace pipeweaver::emit {

/// To be sourced in front of the launcher. `planned`: for what, as `check` reads it (planner::planned_for()). Throws
/// Error{limit} with the rule where there are no grids for the split.
[[nodiscard]] std::string mimo_script(const groups::Placing& placing, const workloads::Model& model,
                                      const std::string& planned);

}  // namespace pipeweaver::emit
