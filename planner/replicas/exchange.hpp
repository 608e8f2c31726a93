// What pipelines make of a batch that was shared out by load: replicas trade microbatches until their plans, not only
// their loads, are even.
#pragma once

#include "planner/replicas/assignment.hpp"

namespace pipeweaver::planner {

/// Plans every replica on the partition by a few quick policies, then lets the slowest trade one microbatch for another
/// of a faster replica, about as long, while that makes the slower of the two faster. Returns the batch as it came
/// where a replica has no such plan; where all together have so many tasks that this would take long (large replicas
/// are even as they are); and on partitions of several chains, on which a quick plan says little of what a search will
/// find.
///
/// Determinism  A function of job, batch, partition and `assignment`: whoever plans one replica alone gets the same.
[[nodiscard]] Assignment exchange(const Job& job, const Batch& batch, const partition::Partition& partition,
                                  Assignment assignment, const Executor& execute);

}  // namespace pipeweaver::planner
