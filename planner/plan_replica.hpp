// One replica of a plan, from its microbatches to its schedule. It is a function of the request, the partition and how the
// batch is shared out, and of nothing that is found for other replicas: each can be planned alone, where it runs.
#pragma once

#include "planner/choose/baselines.hpp"
#include "planner/evaluate/share.hpp"

namespace pipeweaver::planner {

/// What all replicas of a plan have in common. What it refers to outlives it.
struct AllReplicas {
    const Request& request;
    const Scope& scope;
    const partition::Partition& partition;
    const Shared& shared;
};

struct PlannedReplica {
    ReplicaPlan plan;
    Compared searched;  ///< what the plan was made from: every backward is split that the search could split
    ReplicaTimes times;
    RobustChoice choice;  ///< among the schedules found
};

/// Throws Error{limit} where it does not fit (rank, bytes short), or no schedule was found.
[[nodiscard]] PlannedReplica plan_replica(const AllReplicas& all, std::size_t number, const Executor& execute,
                                          const Time& time);

/// With its final step (backwards joined that need not be split, lags that the schedule leads to), and sums over it.
[[nodiscard]] ReplicaPlan finished(const Shared& shared, std::size_t number, Compared searched);

/// Lets go of all that grows with the tasks, but for the schedule: of thousands of replicas few are looked at again.
void let_go(ReplicaPlan& replica);

}  // namespace pipeweaver::planner
