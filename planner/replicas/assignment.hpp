// How a batch is shared out among the replicas, before anything of it is planned.
#pragma once

#include "planner/evaluate/step.hpp"

namespace pipeweaver::planner {

/// Which replica takes which microbatches, and how even that is.
struct Assignment {
    partition::Shares shares;
    std::vector<Duration> costs;  ///< of each microbatch of the batch: partition::microbatch_costs
    ReplicaLoads loads;
    std::vector<Microbatches> microbatches;  ///< of each replica
    /// The replicas that are looked at closely (bounds, perturbed costs, traces), by number: all, or of more than
    /// sizes.replicas_examined the most loaded.
    std::vector<std::size_t> examined;

    [[nodiscard]] bool examines(std::size_t replica) const;
    [[nodiscard]] search::BoundEffort bounds(std::size_t replica) const;  ///< full bounds of those that are examined
};

/// Of each replica the first that has microbatches of the same sizes in the same order: their steps are the same.
[[nodiscard]] std::vector<std::size_t> first_alike(const std::vector<Microbatches>& replicas);

/// Why the batch cannot be shared out: the layout does not suit model and cluster, or a replica has none of the
/// microbatches, or more tasks than `most` whatever the partition. None: it can. Builds nothing of that size.
[[nodiscard]] std::optional<std::string> why_not_sensible(const Job& job, const Batch& batch,
                                                          std::size_t most = sizes.tasks);

/// Throws Error{input} with that.
void require_sensible(const Job& job, const Batch& batch, std::size_t most = sizes.tasks);

/// Gives the batch's microbatches to the replicas, as the batch says, else by cost or in turn as the job says; where
/// its loader decides, by what that takes, too (loading.hpp). Throws as require_sensible().
[[nodiscard]] Assignment assign(const Job& job, const Batch& batch, const Executor& execute,
                                std::size_t most = sizes.tasks);

/// The assignment that these shares make. Pre: `costs` are the microbatches'.
[[nodiscard]] Assignment assigned(const Batch& batch, partition::Shares shares, std::vector<Duration> costs);

// What pipelines make of a batch that was shared out by load: replicas trade microbatches until their plans, not only
// their loads, are even.

/// Plans every replica on the partition by a few quick policies, then lets the slowest trade one microbatch for another
/// of a faster replica, about as long, while that makes the slower of the two faster. Returns the batch as it came
/// where a replica has no such plan; where the loader decided how it was shared out; where all together have so many
/// tasks that this would take long (large replicas are even as they are); and on partitions of several chains, on which
/// a quick plan says little of what a search will find.
///
/// Determinism  A function of job, batch, partition and `assignment`: whoever plans one replica alone gets the same.
[[nodiscard]] Assignment exchange(const Job& job, const Batch& batch, const partition::Partition& partition,
                                  Assignment assignment, const Executor& execute);

}  // namespace pipeweaver::planner
