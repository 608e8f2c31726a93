// One step without a search: a partition and a known schedule, or one that is given, emulated replica by replica.
//
// Determinism  A function of the request and the costs: not of the executor, and not of `reuse`. Statistics of reuse
//              alone depend on threads and history.
#pragma once

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/time_shares.hpp"
#include "pipeweaver/loader/loader.hpp"
#include "pipeweaver/planner/gradient_choice.hpp"
#include "pipeweaver/planner/host_bound.hpp"
#include "pipeweaver/planner/input.hpp"
#include "pipeweaver/planner/jitter.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/long_context.hpp"
#include "pipeweaver/planner/precision.hpp"
#include "pipeweaver/planner/step_recompute.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/solved.hpp"
#include "pipeweaver/search/policy_names.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A replica's schedule with its problem, as they were read.
struct GivenSchedule {
    std::filesystem::path from;  ///< the solution file
    schedule::Solved solved;
};

/// What a stack takes for each shape that it meets for the first time, and over how many steps that pays.
struct Compiling {
    Duration each{};
    std::int64_t steps = 1;
};

struct EmulationRequest {
    Job job;  ///< partition empty: megatron. A setup without a store replays every kernel alone, to the same result
    Batch batch;
    std::optional<Batch> cut_on{};  ///< what the partition is cut on, where the job has no sample; none: the batch
    std::optional<StepRecompute> recompute{};         ///< none: the least of all stages with which it fits the memory
    std::string policy = search::one_f_one_b_policy;  ///< of search::policies(); where no schedule is given
    std::int64_t chunks_per_rank = 1;                 ///< of all partitions but dip
    const Target* target = &targets().front();        ///< what runs it: its shapes and receive buffers
    bool any_memory = false;                          ///< what does not fit is emulated all the same
    std::string assigned;                             ///< the file of the batch's shares, for the report; empty: none
    std::string schedule;                             ///< the folder or file of `schedules`, for the report
    std::vector<GivenSchedule> schedules;       ///< for every replica, in place of a policy, on the fixed partition
    std::optional<loader::Loader> loader{};     ///< that is replayed against the step; none: none is
    std::optional<std::size_t> shapes{};        ///< that microbatches are padded to, at most; none: each has its own
    std::optional<Compiling> compiling{};       ///< what fewer shapes save, for price_of_shapes(); none: not asked
    std::optional<JitterRequest> jitter{};      ///< for jitter_of(); none: not asked
    bool gradients = false;                     ///< whether gradients_of() is asked
    bool lengths = false;                       ///< long_context() is asked
    std::optional<PrecisionAsked> precision{};  ///< for precision_answer(); none: not asked
    /// How it is trained but for formats in a what-if; none: nothing of it is asked.
    std::optional<emulator::Recipe> as_it_is{};
};

/// What it takes to have few shapes.
struct FewShapes {
    std::size_t before = 0, after = 0;                 ///< of all microbatches
    std::int64_t positions_before = 0, positions = 0;  ///< tokens and patches of all
};

/// So many shapes, and what steps with them come to.
struct PricedShapes {
    std::size_t shapes = 0;
    Duration step{};
    double seconds = 0;  ///< of all steps, the shapes compiled once
};

struct ShapesPrice {
    std::vector<PricedShapes> tried;  ///< by shapes: up to the number asked, then as microbatches are
    std::size_t cheapest = 0;         ///< of `tried`, the fewest shapes of equal ones
};

struct Emulation {
    partition::Partition partition;
    std::string policy;                                     ///< as asked; "schedule" where one was given
    std::optional<StepRecompute> recompute;                 ///< none: the given schedule says it of each pass
    std::vector<std::vector<emulator::Recompute>> by_rank;  ///< of replicas and their ranks, where that was asked for
    std::vector<emulator::ReplicaEmulation> replicas;
    partition::Shares assigned;          ///< which microbatches of the batch each replica has
    std::size_t slowest = 0;             ///< the replica with the makespan
    Duration makespan{};                 ///< of that replica
    Duration step{};                     ///< and the optimizer
    double model_flops = 0;              ///< of all replicas, forward and backward, without recomputation
    double mfu = 0;                      ///< model FLOPs / (GPUs * dense bf16 peak * step)
    std::int64_t tokens = 0;             ///< of the backbone, in all replicas
    double tokens_per_second = 0;        ///< of the whole cluster
    emulator::TimeShares shares;         ///< of the time of kernels, all replicas
    std::uint64_t kernels = 0;           ///< of all replicas
    emulator::StoreStatistics reuse;     ///< measured
    std::optional<HostBound> host{};     ///< as host_bound() has it: `step` is the near end; none: not asked, too
    std::optional<Input> input{};        ///< where a loader was given
    std::optional<FewShapes> shapes{};   ///< where a number of them was; MFU counts what is padded
    std::optional<ShapesPrice> price{};  ///< as price_of_shapes() has it; none: not asked, too
    /// As jitter_of() and gradients_of() have them; none: not asked.
    std::optional<JitterReport> jitter{};
    std::optional<GradientReport> gradients{};
    /// Where long_context() and precision_answer() were asked; none: not asked, too.
    std::optional<LongContext> lengths{};
    std::optional<PrecisionAnswer> precision{};
};

/// An emulation; or why there is none.
struct MadeEmulation {
    std::optional<Emulation> emulation{};
    /// limit: it does not fit (rank, bytes short), or the policy does not apply; input: the batch cannot be shared out
    /// so, or is too large.
    std::optional<Error> why_not{};
};

/// The emulation where to have none is an answer. Throws Error{input} for a schedule that was made for something else,
/// for unknown policies and partitions, and what the modules below throw.
[[nodiscard]] MadeEmulation try_emulate(const EmulationRequest& request, const Executor& execute);

/// The emulation where one is needed. Throws why there is none, and as try_emulate().
[[nodiscard]] Emulation emulate(const EmulationRequest& request, const Executor& execute);

/// The most that any rank holds.
[[nodiscard]] Bytes fullest_peak(const Emulation& emulation);

/// The replica in which a rank holds most; the first of several.
[[nodiscard]] std::size_t fullest_replica(const Emulation& emulation, std::size_t rank);

/// A replica's schedule under the request's costs and factors.
struct ScheduledTimes {
    schedule::Problem problem;
    schedule::Schedule schedule;
    std::vector<Duration> duration;  ///< per task, in its memory mode
};

/// What each task takes; without given schedules, under the request's policy and the first recomputation that it may
/// have. Throws as emulate().
[[nodiscard]] ScheduledTimes scheduled_times(const EmulationRequest& request, std::size_t replica,
                                             const Executor& execute);

/// A replica's step with the schedule that it was emulated under. Lags have what transfers wait for ports, tails what
/// is left of gradients, so a plain replay has the makespan.
struct EmulatedStep {
    emulator::StepInput input;
    emulator::StepProblem step;
    schedule::Schedule schedule;
};

/// Of these replicas. Pre: `emulation` is that of `request`, which outlives the result; the replicas exist.
[[nodiscard]] std::vector<EmulatedStep> emulated_steps(const EmulationRequest& request, const Emulation& emulation,
                                                       const std::vector<std::size_t>& replicas,
                                                       const Executor& execute);

/// The kernels of one rank of one replica, by start. Pre: both exist. Throws as emulate().
[[nodiscard]] std::vector<emulator::TracedKernel> kernels_of(const EmulationRequest& request, std::size_t replica,
                                                             std::int64_t rank);

// What fewer shapes save, and what their padding takes.

/// The steps as they come, one after the other, with each number of shapes up to the request's, and with those that the
/// microbatches have: what comes again is not compiled again. What does not fit the memory is not among them. None:
/// what compiling takes is not said. Emulates as often; throws as emulate(). Pre: `emulation` is that of `request`.
[[nodiscard]] std::optional<ShapesPrice> price_of_shapes(const EmulationRequest& request, const Emulation& emulation,
                                                         const Executor& execute);

// What other formats of products would change.

/// What was asked of formats, emulated on the partition, recomputation and policy of `emulation`, whatever the memory.
/// None: nothing was. Throws as emulate(). Pre: `emulation` is that of `request`, which has no schedules.
[[nodiscard]] std::optional<PrecisionAnswer> precision_answer(const EmulationRequest& request,
                                                              const Emulation& emulation, const Executor& execute);

// What else would change the step. None: it is not asked. Pre: `emulation` is that of `request`.

inline constexpr std::size_t most_jittered_replicas = 16;

/// Steps that vary (jitter.hpp), of the slowest replicas: the slowest first, as many as that. Throws as jitter().
[[nodiscard]] std::optional<JitterReport> jitter_of(const EmulationRequest& request, const Emulation& emulation,
                                                    const Executor& execute);

/// Gradients of the slowest replica in fewer bytes. Throws as emulator::gradient_traffic().
[[nodiscard]] std::optional<GradientReport> gradients_of(const EmulationRequest& request, const Emulation& emulation,
                                                         const Executor& execute);

// Whether a step's host would be waited for, by recipes that do not know it.

/// The step launched kernel by kernel: how long it takes lies between `emulation` and HostBound::most(). None: as
/// waiting_for_host() and host_bound_of() have it, or a schedule is given. Emulates once more; throws as emulate().
/// Pre: `emulation` is that of `request`.
[[nodiscard]] std::optional<HostBound> host_bound(const EmulationRequest& request, const Emulation& emulation,
                                                  const Executor& execute);

}  // namespace pipeweaver::planner
