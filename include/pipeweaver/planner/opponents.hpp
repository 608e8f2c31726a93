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
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/time.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A way to run the job.
struct OpponentWay {
    std::string name;  ///< of the partition, or, without a pipeline, of what takes its place
    bool has_pipeline = true;
    std::size_t cut = 0;  ///< ways of the same number have one cut, and differ by their policy alone
    std::shared_ptr<const emulator::Setup> setup{};
    partition::Partition partition{};  ///< cut on the sample
    /// Of the samples that it was cut on, where that is another than the job's.
    std::optional<workloads::Packing> cut_packing{};
    bool cut_on_batch = false;  ///< it was cut on the batch at hand, not on the job's sample
    std::string layers{};       ///< not empty: it was cut by what is said so, see partition::cut_by_layers
    std::string policy{};
    std::string recompute{};  ///< the setting with which it is fastest on the sample and fits all of it
    std::size_t batches = 0;  ///< of the sample, that `step` is the mean of
    Duration step{};          ///< of one replica's share, optimizer included
};

struct Opponents {
    std::vector<OpponentWay> ways;              ///< that run; the fastest on the sample first
    std::vector<NotApplicable> not_applicable;  ///< the others, and why

    const OpponentWay* best() const { return ways.empty() ? nullptr : &ways.front(); }
};

/// "no-pipeline tp 4 zero 3": what a way without a pipeline is called; ZeRO-1 goes without saying.
[[nodiscard]] std::string name_without_pipeline(const emulator::Setup& setup);

/// Whether the target's users launch the way; else it is one that other runtimes, or none, run.
[[nodiscard]] bool launches(const Target& target, const OpponentWay& way);

/// Those that the job's target launches in the job's own layout.
[[nodiscard]] Opponents launched_here(const Opponents& all, const Job& job);

/// Tries all of them on the job's sample, as the job's target runs those that it launches: every one on its first
/// batch, the fastest on all. `time` is asked before each but the first `sizes.opponents_anyhow`; those that it leaves
/// out are among `not_applicable`.
[[nodiscard]] Opponents choose_opponents(const Job& job, const Batch& batch, const Executor& execute,
                                         const Time& time = {});

/// Runs each on the batch; the fastest comes first. Of more than `sizes.replicas_examined` replicas the most
/// loaded are judged: never slower than all of them. A recomputation that was chosen on the sample and does not fit the
/// batch gives way to the fastest that does, and is named. `not_applicable`: those that do not fit the batch at all.
/// Those that `time`, asked before each but the fastest on the sample, leaves out are among them.
[[nodiscard]] Baselines run_opponents(const Opponents& opponents, const Job& job, const Batch& batch,
                                      const Executor& execute, const Time& time = {});

/// A way's recomputation that fits every replica of the batch, where the one that run_opponents() named may not: the
/// fastest of what each replica would take by itself and full. Empty: none fits.
[[nodiscard]] std::string recompute_that_fits(const OpponentWay& way, const std::string& recompute, const Job& job,
                                              const Batch& batch, const Executor& execute);

/// The `pipeweaver emulate` command that prints the step; empty where there is none: the batch was not named by
/// options.
[[nodiscard]] std::string command_of(const OpponentWay& way, const std::string& recompute, const Job& job,
                                     const Batch& batch);

}  // namespace pipeweaver::planner
