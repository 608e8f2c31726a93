// What engineers run without a planner: the schedules that a plan is held against.
//
//   first-stage   encoder whole on the first stage, the language model uneven after it (torchtitan, NeMo Automodel)
//   balanced      one chain of all modules cut by time, with 1, 2, 4 and 8 chunks a rank; megatron: by parameters
//   three-phase   encoder over all GPUs, the language model's pipeline, the encoder's backward
//   no-pipeline   no stages at all: tensor parallelism with ZeRO-1, or with ZeRO-3 (FSDP2), over the same GPUs
//
// each with 1f1b or interleaved, and gpipe, and with the recomputation that is fastest of all that fit
// (opponents/recompute_settings.hpp). Partition and recomputation are chosen on the job's sample, once; the fastest
// there is the job's opponent.
//
// Determinism  A function of the arguments: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/time.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A way to run the job.
struct OpponentWay {
    std::string name;  ///< of the partition, or, without a pipeline, of what takes its place
    bool has_pipeline = true;
    std::size_t cut = 0;  ///< ways of the same number have one cut, and differ by their policy alone
    std::shared_ptr<const emulator::Setup> setup;
    partition::Partition partition;  ///< cut on the sample
    std::string policy;
    std::string recompute;    ///< the setting with which it is fastest on the sample and fits all of it
    std::size_t batches = 0;  ///< of the sample, that `step` is the mean of
    Duration step{};          ///< of one replica's share, optimizer included
};

struct Opponents {
    std::vector<OpponentWay> ways;              ///< that run; the fastest on the sample first
    std::vector<NotApplicable> not_applicable;  ///< the others, and why
    bool cut_short = false;                     ///< time ended the choice: there are no ways

    const OpponentWay* best() const { return ways.empty() ? nullptr : &ways.front(); }
};

/// Tries all of them on the job's sample: every one on its first batch, the fastest on all. `time` is asked before
/// each.
[[nodiscard]] Opponents choose_opponents(const Job& job, const Batch& batch, const Executor& execute,
                                         const Time& time = {});

/// What a plan says where opponents were left out for lack of time.
[[nodiscard]] inline NotApplicable opponents_left_out() { return {"opponents", 1, "all", no_time_left}; }

/// Runs each on the batch, in their order. Of more than `sizes.replicas_examined` replicas the most
/// loaded are judged: never slower than all of them. A recomputation that was chosen on the sample and does not fit the
/// batch gives way to the fastest that does, and is named. `not_applicable`: those that do not fit the batch at all.
/// Where `time`, asked before each, ends it, there are none, and `not_applicable` says why.
[[nodiscard]] Baselines run_opponents(const Opponents& opponents, const Job& job, const Batch& batch,
                                      const Executor& execute, const Time& time = {});

/// The fastest opponent of a batch that runs on the plan's own ranks, step by step: what the plan is pictured beside,
/// and must stand up to if costs are wrong. `replicas`: the microbatches of those that are wanted. None: there is no
/// such opponent, or it does not fit one of them. Pre: `baselines` is what run_opponents() said of that batch.
struct OpponentRun {
    Baseline baseline;
    std::vector<Cut> cuts;                      ///< per replica
    std::vector<schedule::Schedule> schedules;  ///< on `cuts`
};
[[nodiscard]] std::optional<OpponentRun> pipelined_opponent(
    const Opponents& opponents, const Baselines& baselines,
    const std::vector<std::vector<workloads::Microbatch>>& replicas);

/// The `pipeweaver emulate` command that prints the step; empty where there is none: the batch was not named by
/// options.
[[nodiscard]] std::string command_of(const OpponentWay& way, const std::string& recompute, const Job& job,
                                     const Batch& batch);

}  // namespace pipeweaver::planner
