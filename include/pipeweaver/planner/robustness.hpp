// How long a plan takes, and whether it still wins and fits, if the costs it was made from are wrong.
//
// Method       Each replay draws what may be off: for each module its operator classes by the errors of their costs,
//              and all its passes together by the emulator's own; GPUs, single passes, transfers and activations by
//              uncertainty.hpp. The same draw holds for the plan and all baselines, but each schedule has jitter and an
//              error of its own; how: choose/wrong_costs.hpp. Orders, memory modes and tails stay as they are.
// Determinism  random numbers by counter: a function of the arguments but for the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/emulator/uncertainty.hpp"
#include "pipeweaver/planner/step_recompute.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/schedule/solution.hpp"
#include "pipeweaver/search/search.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A schedule of one replica. Both must outlive the call. Pre: its replay completes.
struct Scheduled {
    const emulator::StepProblem* step = nullptr;
    const schedule::Schedule* schedule = nullptr;
};

/// All replicas of a plan or a baseline.
using Side = std::vector<Scheduled>;

inline constexpr int perturbed_replays = 200;

/// The plan against one baseline. Gain: the baseline's makespan over the plan's, each of its slowest replica, in one
/// replay.
struct Gain {
    std::string partition;  ///< of the baseline, with its policy; filled in by make_plan()
    std::int64_t chunks_per_rank = 1;
    std::string policy;
    std::optional<StepRecompute> recompute{};  ///< of an opponent
    int wins = 0;                              ///< replays in which the plan was faster
    int losses = 0;                            ///< replays in which it was slower
    double p10 = 1, p50 = 1, p90 = 1;          ///< nearest rank
};

struct Robustness {
    int replays = perturbed_replays;
    std::size_t replicas = 1;      ///< of the plan that were replayed, its slowest; filled in by make_plan()
    Duration p10{}, p50{}, p90{};  ///< the plan's makespan, of its slowest replica; nearest rank
    int out_of_memory = 0;         ///< replays in which some rank of the plan holds more than it has
    std::vector<Gain> against;     ///< one for each baseline
};

/// Which replays. Those of one seed are the same row of draws, whatever they are asked for.
struct Draws {
    std::uint64_t seed = 1;
    int replays = perturbed_replays;  ///< >= 1
    emulator::Uncertainty beyond{};   ///< what is drawn beside the errors of costs
    /// Jitter and what is off of a schedule itself are the same for all sides, as if they had run at once: schedules of
    /// one problem then differ by their orders alone. Else each has its own, as runs do that are compared.
    bool paired = false;
    std::optional<Bytes> memory{};  ///< what a rank may hold; none: its capacity, of which plans may keep some free
};

/// Replays the plan and every baseline, all replicas of each, under common draws.
[[nodiscard]] Robustness robustness(std::span<const Scheduled> plan, std::span<const Side> baselines,
                                    const Draws& draws, const Executor& execute = in_order);

// Which of several schedules to take that are about as good, if the costs they were made from may be wrong.
//
// A makespan that is 0.1 % shorter says little where costs are off by several per cent: both schedules are replayed
// under the same wrong costs (robustness()), and the one that stands up to them is taken.
//
// The figures that are reported come from other draws than those that decided, so that they are not flattered by the
// choice.

/// How a side did. Wins: replays in which no other side was faster.
struct Standing {
    Duration makespan{};  ///< with the costs as they are
    Duration median{};
    int wins = 0;
};

struct Judgement {
    std::size_t taken = 0;
    std::vector<Standing> standings;  ///< one for each side
};

/// Compares the sides in the draws that follow those of robustness(), as many, paired whatever `draws` says. The first
/// is only given up for a side that is clearly more often faster than it than slower: by two standard deviations of a
/// fair coin's. Of several such the smallest median or the most wins decide; ties go to the smaller makespan, then to
/// the earlier. Pre: at least one side.
[[nodiscard]] Judgement judge(std::span<const Side> sides, bool by_median, const Draws& draws,
                              const Executor& execute = in_order);

/// What was taken, and what that gives up and gains.
struct RobustChoice {
    ChoiceRule rule;
    std::size_t alternatives = 0;  ///< schedules near enough to the smallest makespan, of all replicas and partitions
    bool other = false;            ///< another schedule was taken than that of the smallest makespan
    Duration smallest{};           ///< the smallest makespan found
    Gain over_smallest;  ///< in draws 0 to 199, paired, of the schedule of the smallest makespan; if another was taken
};

}  // namespace pipeweaver::planner
