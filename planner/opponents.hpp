// What a plan is held against: known schedules on all replicas, the chain it is pictured beside, robustness.
#pragma once

#include "planner/comparison.hpp"

namespace pipeweaver::planner {

/// A policy counts where it applies on every replica, with the time of the slowest; a bound of any replica is one of
/// the step.
void merge_baselines(const Comparison& compared, Plan& plan);

/// What an engineer would run without a planner: 1f1b or interleaved, on a fixed chain before any other partition.
/// With its schedule on this replica.
[[nodiscard]] std::optional<BaselinePlan> best_chain(const std::vector<Compared>& replica,
                                                     const std::vector<Baseline>& baselines);

/// What the plan must stand up to: the fastest of all known schedules, the chain it is pictured beside, and the usual
/// pairs, each with the chunks it is fastest with.
[[nodiscard]] std::vector<Baseline> opponents(const Plan& plan);

/// The plan (partition `best`) against those baselines, under costs that are wrong by their own error estimates.
[[nodiscard]] std::optional<Robustness> robustness_of(const Comparison& compared, std::size_t best,
                                                      const std::vector<Baseline>& against, std::uint64_t seed,
                                                      const Executor& execute);

}  // namespace pipeweaver::planner
