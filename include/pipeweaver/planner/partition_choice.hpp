// Which partition a job takes: candidates judged on a sample of its batches, by a policy, the best of them by a search.
//
// Determinism  A function of job, batch and effort, but for `time`: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/partition/partition_file.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/planner/tuning.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace pipeweaver::planner {

struct Job;
struct Batch;

/// A partition as it was judged on the sample.
struct PartitionTried {
    partition::Partition partition;
    std::size_t batches = 0;  ///< of the sample, that `step` is the mean of
    bool searched = false;    ///< `step` is of searches; else of the fastest of the policies that were tried
    Duration step{};          ///< of one replica, with optimizer
    std::string why_not{};    ///< not empty: it does not fit, or no policy applies
};

struct PartitionChoice {
    partition::Partition
        partition;  ///< that is taken: of those within 0.5 % of the best the one with the fewest chunks
    partition::ChosenOn chosen_on{};
    std::vector<PartitionTried>
        tried;               ///< searched ones first, then those judged on more batches, then by step; empty:
                             ///< there was nothing to choose
    bool cut_short = false;  ///< time ended the searches
};

/// Takes the partition that the job fixes, or the best on its sample. Where no candidate fits, the first of them, whose
/// plan then says what is short. `time` is asked before each search and each further batch: where it is over, policies
/// have judged no more than one batch.
[[nodiscard]] PartitionChoice choose_partition(const Job& job, const Batch& batch, const ChoiceEffort& effort,
                                               const Executor& execute, const Time& time = {}, const OnDoing& on = {});

/// A stage with the work that the sample gives it.
struct StageLoad {
    emulator::StageLayers stage;
    Duration time{};  ///< forward and backward of a microbatch, the mean of the sample's
};

/// What a partition makes of the sample, rank by rank.
struct PartitionLoads {
    std::vector<StageLoad> stages;     ///< of all chains
    std::vector<StageLoad> in_phases;  ///< of modules that no chain has: what a GPU of each rank takes, on average
    std::vector<Bytes> fixed;  ///< per rank: weights, gradients, optimizer state, buffers; empty: more than it has
    Bytes usable;              ///< of every rank
    [[nodiscard]] std::vector<const StageLoad*> all() const;  ///< those in phases first
    [[nodiscard]] std::vector<Duration> rank_times() const;
};
[[nodiscard]] PartitionLoads loads_of(const Job& job, const Batch& batch, const partition::Partition& partition);

}  // namespace pipeweaver::planner
