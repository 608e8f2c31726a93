// The sample of a job: batches that partition and opponent are chosen on.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"
#include "planner/schedule/schedule_step.hpp"

#include <vector>

namespace pipeweaver::planner {

/// One replica's share, if the replicas take microbatches in turn.
[[nodiscard]] inline Microbatches share_of_one(const Microbatches& all, std::int64_t replicas) {
    Microbatches share;
    for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(replicas)) share.push_back(all[i]);
    return share;
}

/// The sample's batches, each of one replica; where there is none, every so many-th microbatch of the batch at hand.
[[nodiscard]] inline std::vector<Microbatches> batches_of(const Job& job, const Batch& batch) {
    if (!job.sample.batches.empty()) return job.sample.batches;
    return {share_of_one(batch.microbatches, job.setup->layout.dp)};
}

/// All that a partition is cut by: the sample's microbatches, or those at hand.
[[nodiscard]] inline Microbatches cut_on(const Job& job, const Batch& batch) {
    if (job.sample.batches.empty()) return batch.microbatches;
    Microbatches all;
    for (const Microbatches& one : job.sample.batches) all.insert(all.end(), one.begin(), one.end());
    return all;
}

/// A search that decides between ways to run the job's batches: by few policies, quick bounds, and no choice in the
/// end.
[[nodiscard]] inline ScheduleWanted short_search(const Job& job, std::vector<std::string> policies) {
    ScheduleWanted wanted = schedule_wanted(job);
    wanted.policies = std::move(policies);
    wanted.bounds = search::BoundEffort::quick;
    wanted.policy_bounds = search::BoundEffort::quick;
    wanted.problems = static_cast<std::size_t>(job.setup->layout.dp);
    return wanted;
}

/// Of requests that differ by their packing alone, the one whose sample's steps are shortest on the partition of the
/// first, which it is given: the first itself unless another's are a per cent shorter. (A partition chosen anew for
/// each would differ by more than packings do.) A function of the requests: whoever plans one replica alone packs
/// alike.
[[nodiscard]] Request choose_packing(std::vector<Request> packed, const Executor& execute);

}  // namespace pipeweaver::planner
