// The schedule that PyTorch's runtime can run: one chain, fixed shapes, one recompute setting for the whole step.
#pragma once

#include "pipeweaver/planner/plan.hpp"

namespace pipeweaver::planner {

/// Pads the microbatches, tries every partition as one chain with every recompute setting, and searches in the one on
/// which a policy does best.
[[nodiscard]] TorchPlan make_torch_plan(const Request& request, const costdb::CostDatabase& costs,
                                        const std::vector<partition::Partition>& partitions,
                                        const std::vector<workloads::Microbatch>& microbatches, const Executor& execute,
                                        const search::KeepGoing& keep_going);

}  // namespace pipeweaver::planner
