// Which rung is worth the work that it asks for: what it gains over an easier one, and how surely.
//
// Method       A rung is advised in place of an easier one where its step is shorter by `margins.worth` at least, and
//              where its makespan, too, is shorter in `margins.worth_draws` of the draws of perturbed costs
//              (robustness.hpp). What is off of modules, GPUs and links is drawn once, for both. Jitter and what is off
//              of a schedule itself are each one's own, but of rungs that run one way on other microbatches: these have
//              them in common.
// Determinism  A function of the arguments: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/rung.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A rung's schedules of the replicas that take longest, to be replayed in draws.
struct RungSchedules {
    std::vector<emulator::StepProblem> steps{};  ///< with the tails that their schedules lead to
    std::vector<schedule::Schedule> schedules{};

    /// Pre: the object outlives it.
    [[nodiscard]] Side side() const;

    /// The same, where the optimizer's time is in the ranks' tails.
    [[nodiscard]] RungSchedules with_optimizer() &&;
};

/// Of what flags launch, as the target runs it.
[[nodiscard]] RungSchedules schedules_of(const LaunchedWay& way, const Target& target);

/// Of the plan itself, of its replicas that are examined.
[[nodiscard]] RungSchedules schedules_of(const Plan& plan);

/// Of the schedule that a target has of its own. Pre: there is one.
[[nodiscard]] RungSchedules schedules_of(const TargetPlan& plan);

/// What the rung is worth over an easier one of which it gains enough: by draws of the seed.
[[nodiscard]] Worth worth_over(const Rung& easier, const RungSchedules& of_easier, const Rung& rung,
                               const RungSchedules& of_rung, std::uint64_t seed, const Executor& execute);

/// Says what each rung of the target called so is worth over the easier one that is advised without it, and returns
/// the place of the last that is worth it. `schedules`: those of a rung, asked of rungs that gain enough and of what
/// they are held against. Pre: there is a rung.
[[nodiscard]] std::size_t advise(std::vector<Rung>& rungs, const std::string& option,
                                 const std::function<RungSchedules(const Rung&)>& schedules, std::uint64_t seed,
                                 const Executor& execute);

}  // namespace pipeweaver::planner
