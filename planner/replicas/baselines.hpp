// What a plan is held against: policies on its own partition, the opponent that is pictured, and all of them under
// wrong costs.
#pragma once

#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "planner/evaluate/step.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::planner {

struct ScheduledStep;

/// What a policy makes of one replica.
struct PolicyTime {
    std::string policy;
    Duration makespan{};
    std::string why_not{};  ///< not empty: it does not apply
};

/// What is known of a replica's step when the step itself is let go.
struct ReplicaTimes {
    std::vector<PolicyTime> policies;
    Duration bound{};  ///< of every schedule
    Duration optimizer{};
};
[[nodiscard]] ReplicaTimes times_of(const Step& known);

/// A policy counts where it applies on every replica, with the time of the slowest; a bound of any replica is one of
/// the step. Pre: all replicas were evaluated with the same policies.
[[nodiscard]] Baselines baselines_of(const partition::Partition& partition, const std::vector<ReplicaTimes>& replicas);

/// Of the policies on the plan's partition; null: there is none. Pre: `baselines` outlives the answer.
[[nodiscard]] const Baseline* fastest_policy(const Baselines& baselines);

/// The fastest opponent of a batch that runs on the plan's own ranks, of those that the target launches if there are
/// any: what the plan is pictured beside, and must stand up to if costs are wrong.
struct OpponentRun {
    Baseline baseline;
    std::vector<Step> steps;                    ///< per replica
    std::vector<schedule::Schedule> schedules;  ///< on `steps`
};

/// The run on `replicas`, the microbatches of those that are wanted. None: there is no such opponent, or it does not
/// fit one of them. Pre: `baselines` is what run_opponents() said of that batch.
[[nodiscard]] std::optional<OpponentRun> pipelined_opponent(const Job& job, const Opponents& opponents,
                                                            const Baselines& baselines,
                                                            const std::vector<Microbatches>& replicas);

/// The opponent as it runs on one of its replicas, with the lags and tails that its schedule leads to.
[[nodiscard]] BaselinePlan pictured(const OpponentRun& run, std::size_t replica);

/// The plan against an opponent and a policy on its own partition if costs are wrong, on these of its replicas, on
/// which the opponent ran first; none without either, which may be null.
[[nodiscard]] std::optional<Robustness> robustness_of(const std::vector<const ScheduledStep*>& examined,
                                                      const OpponentRun* opponent, const Baseline* policy,
                                                      const Draws& draws, const Executor& execute);

}  // namespace pipeweaver::planner
