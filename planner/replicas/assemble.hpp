// A plan put together from what was compared and found: the sums over its replicas.
#pragma once

#include "planner/replicas/plan_replica.hpp"

namespace pipeweaver::planner {

/// The partition that the job fixes, else those that runtimes of one chain are given.
[[nodiscard]] std::vector<partition::Partition> partitions_of(const Job& job, const Batch& batch);

/// The numbers of the replicas that are wanted.
[[nodiscard]] std::vector<std::size_t> replicas_of(const Job& job, const Wanted& wanted);

/// Of a target that was not planned, and why.
[[nodiscard]] TargetPlan no_target_plan(const Target& target, const std::string& why);

/// Plan::targets where none was.
[[nodiscard]] std::vector<TargetPlan> no_target_plans(const std::string& why);

/// Replicas, makespan, bound, step, shares of time and MFU; what the plan is compared with is the caller's to add.
[[nodiscard]] Plan assemble(const Job& job, const Assignment& assignment, std::vector<ReplicaPlan> replicas);

}  // namespace pipeweaver::planner
