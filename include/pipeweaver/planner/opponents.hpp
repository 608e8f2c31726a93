// What engineers run without a planner: the schedules that a plan is held against.
//
//   first-stage   encoder whole on the first stage, the language model uneven after it (torchtitan, NeMo Automodel)
//   balanced      one chain of all modules cut by time, with 1, 2, 4 and 8 chunks a rank; megatron: by parameters
//   three-phase   encoder over all GPUs, the language model's pipeline, the encoder's backward
//   no-pipeline   no stages at all: tensor parallelism with ZeRO-1, or with ZeRO-3 (FSDP2), over the same GPUs
//
// each with 1f1b or interleaved, and gpipe, and with the recomputation that is fastest of all that fit
// (planner/way/run.hpp). Partition and recomputation are chosen on the job's sample, once; the fastest
// there is the job's opponent.
//
// Determinism  A function of the arguments: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/planner/way.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A way to run the job, cut on its sample, with the recomputation with which it is fastest there and fits all of it.
struct OpponentWay : Way {
    std::size_t cut = 0;  ///< ways of the same number have one cut, and differ by their policy alone
    /// Of the samples that it was cut on, where that is another than the job's.
    std::optional<workloads::Packing> cut_packing{};
    bool cut_on_batch = false;  ///< it was cut on the batch at hand, not on the job's sample
    std::size_t batches = 0;    ///< of the sample, that `step` is the mean of
    Duration step{};            ///< of one replica's share, optimizer included
};

struct Opponents {
    std::vector<OpponentWay> ways;              ///< that run; the fastest on the sample first
    std::vector<NotApplicable> not_applicable;  ///< the others, and why

    const OpponentWay* best() const { return ways.empty() ? nullptr : &ways.front(); }
};

/// "no-pipeline tp 4 zero 3": what a way without a pipeline is called; ZeRO-1 goes without saying.
[[nodiscard]] std::string name_without_pipeline(const emulator::Setup& setup);

/// Whether the way is in the job's layout and ZeRO stage, whatever switches are on.
[[nodiscard]] bool is_in_layout_of(const Way& way, const Job& job);

/// The first that the job's target launches in the job's own layout; null: none.
[[nodiscard]] const OpponentWay* first_launched(const Opponents& all, const Job& job);

/// Those that the job's target launches in the job's own layout.
[[nodiscard]] Opponents launched_here(const Opponents& all, const Job& job);

/// How long a plan takes at least for a task of each of so many of its replicas, its files included: by what a run of a
/// known schedule takes now on `execute`.
[[nodiscard]] Duration time_of_tasks(const Job& job, const Batch& batch, std::size_t replicas, const Executor& execute);

/// How long it takes, about, what follows the search of all replicas.
struct AfterSearch {
    Duration opponent{};  ///< to plan them once more, as an opponent that is faster
    Duration end{};       ///< the last rungs, and the files of the whole plan
};

/// By what a run of a known schedule takes now on `execute`. `opponent`: that may be the plan, in the job's layout;
/// null: none may. Nothing where the time has no clock or is over.
[[nodiscard]] AfterSearch time_after_search(const Job& job, const Batch& batch, const Way* opponent,
                                            const Executor& execute, const Time& time);

/// The time, at most, for what a plan's users could launch by themselves. Where an order is searched it is a part of
/// what is left beside what must be done of every replica; where none is, all but what follows, `runs` runs of a known
/// schedule on all replicas: as long as one takes now on `execute`, which is measured on few replicas if the time has a
/// clock. `like`: that schedule, in the job's layout; null: a plain one.
[[nodiscard]] Time time_for_opponents(const Job& job, const Batch& batch, const Executor& execute, const Time& time,
                                      double runs, const Way* like = nullptr);

/// Tries all of them on the job's sample, as the job's target runs those that it launches: every one on its first
/// batch, the fastest on all. `time` is asked before each but the first `sizes.opponents_anyhow`; those that it leaves
/// out are among `not_applicable`.
[[nodiscard]] Opponents choose_opponents(const Job& job, const Batch& batch, const Executor& execute,
                                         const Time& time = {});

/// Runs each on the batch; the fastest comes first. Of more than `sizes.replicas_examined` replicas the most
/// loaded are judged: never slower than all of them. A recomputation that was chosen on the sample and does not fit the
/// batch gives way to the fastest that does, and is named. `not_applicable`: those that do not fit the batch at all.
/// Those that `time` leaves out or, where it has a clock, ends are among them; it is asked of each but the fastest on
/// the sample, where no order is searched of those that the target launches in the job's layout.
[[nodiscard]] Baselines run_opponents(const Opponents& opponents, const Job& job, const Batch& batch,
                                      const Executor& execute, const Time& time = {});

/// A way as all replicas of the batch run it.
struct OpponentResult : WayResult {
    Batch batch;  ///< in the way's layout
    partition::Shares assigned{};
};

/// The way on every replica of the batch, as the job's target runs it: with its recomputation, or where that does not
/// fit one of them, unless it is to be `exactly` that, with the fastest that fits all.
[[nodiscard]] OpponentResult run_on_all(const Way& way, const Job& job, const Batch& batch, const Executor& execute,
                                        bool exactly = false);

/// What the row is of, with the recomputation that it was judged with on the most loaded replicas.
[[nodiscard]] OpponentWay way_of(const Baseline& row, const Opponents& all);

/// The job's options, asking for the batch in the setup's layout and ZeRO stage. Pre: the job has words.
[[nodiscard]] OptionValues words_in(const emulator::Setup& setup, const Job& job, const Batch& batch);

/// The `pipeweaver emulate` command that prints the way's step; empty where there is none: the batch was not named by
/// options. Pre: it has a recomputation.
[[nodiscard]] std::string command_of(const OpponentWay& way, const Job& job, const Batch& batch);

// Cuts of known schedules tuned by hand, as engineers do it: layers moved between stages while the step gets shorter.

/// Adds to the opponents what comes of the fastest few that the job's target launches as one chain in its layout, each
/// under its own order and the recomputation that is fastest for the cut: judged on the sample, so none is faster on
/// every batch. Nothing where no move makes a step shorter. `time` is asked between moves; whether it left out none.
[[nodiscard]] bool add_tuned(Opponents& opponents, const Job& job, const Batch& batch, const Executor& execute,
                             const Time& time);

}  // namespace pipeweaver::planner
