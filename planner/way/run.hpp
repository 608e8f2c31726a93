// The one runner of known ways: replicas as a target's users would run them, all with one recomputation.
//
//   setting   the one that is said, where every replica fits with it; else of all that every replica fits with the one
//             under which the slowest is fastest. Ties go to the smaller peak, then to the earlier; by rank is the last
//   buckets   settings are compared without what reductions in buckets add; the result has it
//
// Determinism  A function of the arguments: not of the executor.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/planner/way.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/evaluate/step.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

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

/// Those of `all` replicas that have these numbers, as the way runs them: where its target pads, as large as of all.
[[nodiscard]] std::vector<Microbatches> some_as_run(const Way& way, const Target& target,
                                                    const std::vector<Microbatches>& all,
                                                    const std::vector<std::size_t>& numbers);

/// Whether work is to end without a result; null: never.
using IsLate = std::function<bool()>;

/// Steps of a way that are at hand: any policy can be run on them.
class BuiltWay {
public:
    /// `replicas`: the microbatches of each, one or more. Pre: the target outlives it. Throws Error{input} where one
    /// has more tasks than can be planned.
    BuiltWay(const Way& way, std::vector<Microbatches> replicas, const Target& target);

    /// With the setting that is said if all fit with it; of many steps schedules would be most of the memory.
    /// `is_late`, where there is one, is asked before each of the settings that are tried; then the result has the
    /// reason no_time_left.
    [[nodiscard]] WayResult run(std::string_view policy, const std::optional<StepRecompute>& recompute,
                                bool keeps_schedules = false, const IsLate& is_late = {}) const;

    Step take(std::size_t replica) { return std::move(known_[replica]); }

private:
    WayOfTarget runs_;
    std::vector<Step> known_;  // up to the first that does not fit at all
};

/// The way on replicas whose steps are built for one of them after the other: those of all at once would not fit
/// memory. Replicas of equal microbatches are run once. The result has no schedules. Pre: one replica or more; no
/// what-if tells their devices apart.
[[nodiscard]] WayResult run_way(const Way& way, std::vector<Microbatches> replicas, const Target& target, bool exactly,
                                const Executor& execute);

/// Steps that were built with `settings`, one or more, which fit with some of them. Where schedules are not kept, the
/// fastest setting is not run once more.
[[nodiscard]] WayResult run_steps(const std::vector<const Step*>& steps, std::string_view policy,
                                  const std::vector<emulator::Recompute>& settings,
                                  const std::optional<StepRecompute>& recompute, bool keeps_schedules = true);

/// One replica's step under a known policy, run with one recomputation after another. Pruning: under a fixed order more
/// blocks that run again make no task shorter, so of blocks:N only the smallest N that every rank has room for is worth
/// running; it is found by memory alone. On shared ports a longer task can, rarely, make a schedule shorter
/// (emulator/ports.hpp); such a gain is not looked for. Policies whose order times decide are run with every setting.
class StepUnderPolicy {
public:
    /// Pre: the step was built with `settings` as its modes, and is split where the policy needs it; both outlive it.
    /// Throws Error{input} for an unknown policy.
    StepUnderPolicy(const emulator::StepProblem& step, std::string_view policy,
                    const std::vector<emulator::Recompute>& settings);

    /// Why the policy does not apply, or the setting that was run last does not fit; empty: it runs.
    const std::string& why_not() const { return why_not_; }

    /// What the setting that was run last is short of, at the task that it came to a stop at; 0: it runs, or what keeps
    /// it from running is not memory.
    Bytes short_by() const { return short_by_; }

    /// Whether the policy has a fixed order, which every rank can run with a setting of its own.
    bool has_order() const { return has_order_; }

    /// None: the setting does not fit, or is not there: not among the settings, of other ranks than the step's, or by
    /// rank as it fits without a fixed order.
    [[nodiscard]] std::optional<ReplicaRun> run(const StepRecompute& setting);

    /// The place among the settings of blocks:N with the smallest N that fits; none: none does. Pre: has_order().
    [[nodiscard]] std::optional<std::size_t> fewest_blocks() const;

    /// The largest peak of the run as a fraction of its rank's capacity.
    [[nodiscard]] double fullness(const ReplicaRun& run) const;

private:
    /// Of each pair the place of its mode among the settings; none: not all are there.
    [[nodiscard]] std::optional<std::vector<std::uint32_t>> modes_of(const StepRecompute& setting) const;

    std::optional<ReplicaRun> run_in(std::vector<std::uint32_t> modes);
    std::optional<ReplicaRun> taken(search::PolicyResult result);

    const emulator::StepProblem& step_;
    std::string policy_;
    const std::vector<emulator::Recompute>& settings_;
    schedule::Replayer replayer_;
    bool has_order_;
    search::PolicyOrder order_;
    std::string why_not_;
    Bytes short_by_{};
};

}  // namespace pipeweaver::planner
