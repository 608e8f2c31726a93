// The schedule that PyTorch's runtime can run: one chain, fixed shapes, one recompute setting for the whole step.
#pragma once

#include "pipeweaver/planner/plan.hpp"
#include "planner/split_search.hpp"

namespace pipeweaver::planner {

/// Pads the microbatches, tries every partition as one chain with every recompute setting, and searches in the one on
/// which a policy does best; without recomputation also with split backwards. Where PyTorch recomputes, the weight
/// gradient would recompute again: such backwards stay whole.
[[nodiscard]] TorchPlan make_torch_plan(const Request& request, const costdb::CostDatabase& costs,
                                        const std::vector<partition::Partition>& partitions,
                                        const std::vector<workloads::Microbatch>& microbatches, const Executor& execute,
                                        const Limits& limits);

}  // namespace pipeweaver::planner
