// A plan put together from what was compared and found: the sums over its replicas.
#pragma once

#include "planner/choose/comparison.hpp"
#include "planner/evaluate/share.hpp"

namespace pipeweaver::planner {

/// What the scope names, else what the request leaves open.
[[nodiscard]] std::vector<partition::Partition> partitions_of(const Request& request, const Scope& scope);

/// Plan::targets where none was planned, and why.
[[nodiscard]] std::vector<TargetPlan> no_target_plans(const std::string& why);

/// Replicas, makespan, bound, step, shares of time and MFU of one partition, `chosen` per replica; what it is compared
/// with is the caller's to add. Pre: each has a schedule.
[[nodiscard]] Plan assemble(const Request& request, const Shared& shared, std::vector<Compared> chosen);

}  // namespace pipeweaver::planner
