// The one runner of known ways: replicas as a target's users would run them, all with one recomputation.
//
//   setting   the one that is said, where every replica fits with it; else of all that every replica fits with the one
//             under which the slowest is fastest. Ties go to the smaller peak, then to the earlier; by rank is the last
//   buckets   settings are compared without what reductions in buckets add; the result has it
//
// Determinism  A function of the arguments: not of the executor.
#pragma once

#include "pipeweaver/planner/way.hpp"
#include "planner/evaluate/step.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

/// How a way is run.
struct HowRun {
    bool exactly = false;         ///< with the setting that is said or not at all
    bool keeps_schedules = true;  ///< else the result has none
};

/// What the steps of a way are built with and run by.
struct WayOfTarget {
    const Target* target = nullptr;               ///< the one that launches the way, else the first of targets()
    std::vector<emulator::Recompute> settings{};  ///< modes of their passes
    bool by_rank = true;                          ///< whether each rank may have its own of them, unless that is said

    /// With all settings that the target can be told. Pre: the target outlives it.
    WayOfTarget(const Way& way, const Target& target);

    /// With what the way itself says alone. Pre: it has a recomputation.
    [[nodiscard]] static WayOfTarget as_said(const Way& way, const Target& target);

    /// The step of one replica.
    [[nodiscard]] Step build(const Way& way, Units units) const;
};

/// Steps of a way that are at hand: any policy can be run on them.
class BuiltWay {
public:
    /// `replicas`: the microbatches of each, one or more. Pre: the target outlives it. Throws Error{input} where one
    /// has more tasks than can be planned.
    BuiltWay(const Way& way, const std::vector<Microbatches>& replicas, const Target& target);

    [[nodiscard]] WayResult run(std::string_view policy, const std::optional<StepRecompute>& recompute,
                                const HowRun& how = {.keeps_schedules = false}) const;

    Step take(std::size_t replica) { return std::move(known_[replica]); }

private:
    WayOfTarget runs_;
    std::vector<Step> known_;  // up to the first that does not fit at all
};

/// The way on replicas whose steps are built for one of them after the other: those of all at once would not fit
/// memory. Replicas of equal microbatches are run once. The result has no schedules. Pre: one replica or more; no
/// what-if tells their devices apart.
[[nodiscard]] WayResult run_way(const Way& way, const std::vector<Microbatches>& replicas, const Target& target,
                                bool exactly, const Executor& execute);

/// Steps that were built with `settings`, one or more, which fit with some of them.
[[nodiscard]] WayResult run_steps(const std::vector<const Step*>& steps, std::string_view policy,
                                  const std::vector<emulator::Recompute>& settings,
                                  const std::optional<StepRecompute>& recompute);

}  // namespace pipeweaver::planner
