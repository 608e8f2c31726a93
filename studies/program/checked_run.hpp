// One replica's batch on a partition, run by a policy or a search, and checked by a second replay that shares no code
// with the search: what the published experiments compare.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/search/search.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::studies {

/// What a partition is cut on: all batches of the job's sample in a row; without a sample the batch at hand.
[[nodiscard]] std::vector<workloads::Microbatch> cut_sample(const planner::Request& request);

/// A step that ran. Time of it: replay.makespan + step.optimizer.
struct CheckedRun {
    emulator::StepProblem step;  ///< with the lags that the schedule leads to
    schedule::Schedule schedule;
    schedule::Replay replay;

    Duration time() const { return replay.makespan + step.optimizer; }
};

/// The step of the request's batch under the policy. Of several `modes` all passes have the fastest one that fits.
/// Nothing where it does not fit or the policy does not apply. Pre: one replica. Throws Error{limit} if the schedule is
/// wrong.
[[nodiscard]] std::optional<CheckedRun> run_policy(const planner::Request& request,
                                                   const partition::Partition& partition, const std::string& policy,
                                                   const std::vector<emulator::Recompute>& modes);

/// The same by a search, which has one of the modes for each pass.
[[nodiscard]] std::optional<CheckedRun> run_search(const planner::Request& request,
                                                   const partition::Partition& partition,
                                                   const search::Options& options,
                                                   const std::vector<emulator::Recompute>& modes,
                                                   const Executor& execute, const search::KeepGoing& keep_going);

}  // namespace pipeweaver::studies
