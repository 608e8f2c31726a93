// The schedule that a target can run that has one of its own: on its partitions and shapes, with what it can be told to
// recompute, searched or in its own order.
#pragma once

#include "planner/evaluate/step.hpp"

namespace pipeweaver::planner {

/// Tries every partition, of a target of one chain as one, recomputing nothing, everything or, where the target can, on
/// each rank what it needs. In the one on which a policy of the target does best (ties to the earlier) it searches, or
/// takes that policy of a target with an order of its own. `replicas` are the microbatches of each: of a target with
/// fixed shapes all are brought to one number, a replica with fewer repeating its last one, and in a pipeline padded to
/// one shape; one schedule is every replica's, made on the one with the most to do, and it fits them all. Of another
/// target it is for the first. `why_not` says so where none can be run or fits. The target need be none of targets().
[[nodiscard]] TargetPlan make_target_plan(const Job& job, const Target& target,
                                          const std::vector<partition::Partition>& partitions,
                                          const std::vector<Microbatches>& replicas, const Executor& execute,
                                          const Time& time);

}  // namespace pipeweaver::planner
