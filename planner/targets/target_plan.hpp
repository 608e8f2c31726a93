// The schedule that a target with a fixed chain can run: fixed shapes, one recompute
// setting for the whole step, or one for each rank.
#pragma once

#include "planner/evaluate/step.hpp"

namespace pipeweaver::planner {

/// Pads the microbatches, tries every partition as one chain recomputing nothing, everything, or on each
/// rank what it needs, and searches in the one on
/// which a policy does best (ties to the earlier). `why_not` says so where none can be run or fits.
[[nodiscard]] TargetPlan make_target_plan(const Job& job, const Target& target,
                                          const std::vector<partition::Partition>& partitions,
                                          const Microbatches& microbatches, const Executor& execute, const Time& time);

}  // namespace pipeweaver::planner
