// The opponent that a plan is pictured beside, step by step.
#pragma once

#include "pipeweaver/planner/opponents.hpp"
#include "planner/evaluate/step.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::planner {

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

}  // namespace pipeweaver::planner
