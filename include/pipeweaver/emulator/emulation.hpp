// One step of one replica, emulated: how long, where the time of every rank goes, what decides the step, and what every
// rank holds when.
//
// Reuse        with it, equal layers are priced once, a pass lasts what it was found to last when the step was built,
//              and the schedule is replayed task by task; without it, every kernel of every task is priced and replayed
//              on its own. Both give the same nanoseconds and bytes, which tests hold.
// Bubble       of a rank: everything in the step that is neither its own kernels, nor what they wait for on the same
//              GPU, nor what follows its last task. Transfers between ranks are part of it.
// Threads      any number of calls at once.
#pragma once

#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emulator {

/// Where a rank's time goes; all of it together is the step.
struct RankTime {
    Duration compute{};                       ///< the compute stream runs kernels
    std::array<Duration, streams> exposed{};  ///< compute waits for another stream of its GPU, by which
    Duration bubble{};                        ///< waits for other ranks
    Duration gradients{};                     ///< after the last task: gradients, weights, tied embeddings
    Duration optimizer{};

    Duration total() const;
    Duration busy() const;  ///< all but the bubble

    friend bool operator==(const RankTime&, const RankTime&) = default;
};

struct MemoryPoint {
    Duration at{};
    Bytes held;

    friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

/// Memory of a rank at its fullest, and over the step.
struct RankMemory {
    StaticMemory fixed;
    Bytes activations;  ///< at the peak: held by passes whose backward is still to come
    Bytes transient;    ///< at the peak: of the pass that runs
    Bytes peak;         ///< the sum
    std::int64_t in_flight =
        0;  ///< passes that hold activations at the peak; 1 where none begins after another has ended
    std::vector<MemoryPoint> timeline;  ///< what is held from each point on; task by task

    friend bool operator==(const RankMemory&, const RankMemory&) = default;
};

/// A kind of work on the path that decides the makespan.
struct CriticalPart {
    std::string what;    ///< an OperatorClass, a Stream, "transfer", "gradients" or "optimizer"
    std::string module;  ///< empty where it belongs to none
    Duration time{};

    friend bool operator==(const CriticalPart&, const CriticalPart&) = default;
};

struct ReplicaEmulation {
    Duration makespan{};  ///< tails included
    Duration step{};      ///< the makespan and the optimizer
    std::vector<RankTime> time;
    std::vector<RankMemory> memory;
    std::vector<CriticalPart> critical;  ///< longest first; together the step; see EmulationOptions
    std::uint64_t kernels = 0;           ///< that were accounted for
    PortWaits waits{};                   ///< in the step's lags, as set_lags() said them; the caller's to fill in

    friend bool operator==(const ReplicaEmulation&, const ReplicaEmulation&) = default;
};

struct EmulationOptions {
    bool reuse = true;          ///< false: every kernel of every task is priced and replayed on its own
    bool critical_path = true;  ///< false: left empty
};

/// Emulates `schedule` of step = build_step(input). Pre: the schedule completes on the problem. Throws Error{input}
/// where times exceed 63 bits.
[[nodiscard]] ReplicaEmulation emulate(const StepInput& input, const StepProblem& step,
                                       const schedule::Schedule& schedule, const EmulationOptions& options = {});

/// Gives the step's ranks the tails that this schedule leads to where gradients are reduced in buckets beside its last
/// backwards, so that a plain replay has the makespan of emulate(). What backwards lose beside these exchanges, and
/// what others lose by waiting for them, is in the tails. No tail is shorter than before, so a bound on the step
/// remains one. Changes nothing without Recipe::bucket. Pre: as emulate().
void set_tails(const StepInput& input, StepProblem& step, const schedule::Schedule& schedule);

/// What steps of this setup approximate: a sentence each. `has_range`: beside the step it is said how long it takes
/// where its host is waited for; no sentence says then that it never is.
[[nodiscard]] std::vector<std::string> approximations(const Setup& setup, bool has_range = false);

/// What a step on a device that is known by its peaks alone is worth; empty: tables or runs of it are at hand.
[[nodiscard]] std::string modelled_text(const Setup& setup);

/// By how much an anchor corrects the recipe, and which error remains; empty: none does.
[[nodiscard]] std::string anchored_text(const Setup& setup);

/// A kernel as it ran.
struct TracedKernel {
    Stream stream = Stream::compute;
    std::string_view name;                          ///< Operator::name
    std::string module;                             ///< empty: it belongs to none
    std::optional<std::int64_t> microbatch, stage;  ///< none: after the last task
    Duration start{}, duration{};
};

/// The kernels of a rank, by start; all that follows its last task is one kernel. Pre: as emulate().
[[nodiscard]] std::vector<TracedKernel> kernels_of(const StepInput& input, const StepProblem& step,
                                                   const schedule::Schedule& schedule, RankId rank);

}  // namespace pipeweaver::emulator
