// One replica of a plan, from its microbatches to its schedule. It is a function of the job, the partition and how
// the batch is shared out, and of nothing that is found for other replicas: each can be planned alone, where it runs.
#pragma once

#include "planner/replicas/assignment.hpp"
#include "planner/replicas/baselines.hpp"
#include "planner/schedule/schedule_step.hpp"

namespace pipeweaver::planner {

/// What all replicas of a plan have in common. What it refers to outlives it.
struct AllReplicas {
    const Job& job;
    const Wanted& wanted;
    const partition::Partition& partition;
    const Assignment& assignment;
};

struct PlannedReplica {
    ReplicaPlan plan;
    ScheduledStep scheduled;  ///< what the plan was made from: every backward is split that the search could split
    ReplicaTimes times;
    std::string why_not{};  ///< not empty, and no more known: it does not fit (rank, bytes short), or has no schedule
};

/// Plans the replica within its time.
[[nodiscard]] PlannedReplica plan_replica(const AllReplicas& all, std::size_t number, const Executor& execute,
                                          const Time& time);

/// How a replica's step is built.
[[nodiscard]] StepWanted replica_wanted(const emulator::Setup& setup, const partition::Partition& partition,
                                        std::size_t number);

/// The replica with its final step, and sums over it.
[[nodiscard]] ReplicaPlan finished(const Assignment& assignment, std::size_t number, ScheduledStep scheduled);

/// Lets go of all that grows with the tasks, but for the schedule: of thousands of replicas few are looked at again.
void let_go(ReplicaPlan& replica);

}  // namespace pipeweaver::planner
