// A plan put together from what was compared and found: the sums over its replicas.
#pragma once

#include "planner/choose/comparison.hpp"

namespace pipeweaver::planner {

/// Which replica takes which microbatches, and how even that is.
struct Shared {
    partition::Shares shares;
    ReplicaLoads loads;
    std::vector<Microbatches> microbatches;  ///< of each replica
};

/// Throws Error{input} where the layout does not suit the request, or a replica has more tasks than `most`.
[[nodiscard]] Shared share(const Request& request, const Executor& execute, std::size_t most = most_tasks);

/// What the scope names, else what the request leaves open.
[[nodiscard]] std::vector<partition::Partition> partitions_of(const Request& request, const Scope& scope);

/// Plan::targets where none was planned, and why.
[[nodiscard]] std::vector<TargetPlan> no_target_plans(const std::string& why);

/// Replicas, makespan, bound, step, shares of time and MFU of one partition, `chosen` per replica; what it is compared
/// with is the caller's to add. Pre: each has a schedule.
[[nodiscard]] Plan assemble(const Request& request, const Shared& shared, std::vector<Compared> chosen);

}  // namespace pipeweaver::planner
