// The sample of a job: batches that partition and opponent are chosen on.
#pragma once

#include "planner/schedule/schedule_step.hpp"

namespace pipeweaver::planner {

/// The sample's batches, each of one replica; where there is none, every so many-th microbatch of the batch at hand.
[[nodiscard]] inline std::vector<Microbatches> batches_of(const Job& job, const Batch& batch) {
    if (!job.sample.batches.empty()) return job.sample.batches;
    std::vector<Microbatches> own(1);
    for (std::size_t i = 0; i < batch.microbatches.size(); i += static_cast<std::size_t>(job.setup->layout.dp))
        own.front().push_back(batch.microbatches[i]);
    return own;
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

}  // namespace pipeweaver::planner
