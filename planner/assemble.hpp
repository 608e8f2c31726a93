// A plan put together from what was compared and found: the sums over its replicas.
#pragma once

#include "pipeweaver/partition/replicas.hpp"
#include "planner/comparison.hpp"

namespace pipeweaver::planner {

/// Which replica takes which microbatches, and how even that is.
struct Shared {
    partition::Shares shares;
    ReplicaLoads loads;
};

/// Throws Error{input} where the layout does not suit the request, or a replica is too large to plan.
[[nodiscard]] Shared share(const Request& request, const partition::Workload& workload,
                           const Executor& execute = in_order);

/// The microbatches of each replica.
[[nodiscard]] Parts parts_of(const Request& request, const partition::Shares& shares);

/// `plan`, which says what it was compared with, completed by replicas, makespan, bound, step, shares of time and MFU
/// of one partition, `chosen` per replica. Pre: each has a schedule.
[[nodiscard]] Plan assemble(const Request& request, const Shared& shared, std::vector<Compared> chosen, Plan plan);

}  // namespace pipeweaver::planner
