// Whether a plan still wins if the costs it was made from are wrong.
//
// Method       Each replay draws one log-normal factor per operator class and basis and applies it to that share of
//              every task, of the plan and of all baselines alike: exp(sigma * z), z standard normal. A cost's error is
//              the half-width that holds nine of ten measurements, so sigma = error / 1.645, the mean over all
//              schedules weighted by time. Orders, memory modes, lags and tails stay as they are.
// Determinism  random numbers by counter: a function of the arguments but for the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// (partition, policy) that people run without a planner, or with the published one.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 3> usual_pairs{
    {{"megatron", "1f1b"}, {"megatron", "interleaved"}, {"dip", "dual-queue"}}};

/// The plan against one baseline. Gain: the baseline's makespan over the plan's, each of its slowest replica, in one
/// replay.
struct Gain {
    std::string partition;  ///< of the baseline, with its policy; filled in by make_plan()
    std::int64_t chunks_per_rank = 1;
    std::string policy;
    int wins = 0;                      ///< replays in which the plan was faster
    int losses = 0;                    ///< replays in which it was slower
    double p10 = 1, p50 = 1, p90 = 1;  ///< nearest rank
};

struct Robustness {
    int replays = perturbed_replays;
    std::vector<Gain> against;  ///< one for each baseline
};

/// Replays the plan and every baseline, all replicas of each, under `replays` common perturbations. Pre: replays >= 1.
[[nodiscard]] Robustness robustness(std::span<const Scheduled> plan, std::span<const Side> baselines,
                                    std::uint64_t seed, const Executor& execute = in_order,
                                    int replays = perturbed_replays);

}  // namespace pipeweaver::planner
