// A plan that is an opponent's: its cut, order and recomputation, on every replica.
#pragma once

#include "pipeweaver/planner/opponents.hpp"

#include <memory>

namespace pipeweaver::planner {

class PlannedReplicas;
struct Assignment;

/// The fastest opponent that could be the plan of the job, if it is faster than `step`: it runs on the plan's own
/// ranks, and the job's target can run it. Null: there is none.
[[nodiscard]] const Baseline* faster_opponent(const Job& job, const Baselines& opponents, Duration step);

class OpponentPlan {
public:
    /// Plans all replicas as `way` runs them, without a search. Pre: all of the assignment fit with its recomputation
    /// (run_on_all()); job, wanted and assignment outlive
    /// it.
    OpponentPlan(const Job& job, const Wanted& wanted, const Way& way, const Assignment& assignment,
                 const Executor& execute);
    OpponentPlan(OpponentPlan&&) noexcept;
    OpponentPlan& operator=(OpponentPlan&&) noexcept;
    ~OpponentPlan();

    PlannedReplicas& replicas();

private:
    struct Made;
    std::unique_ptr<Made> made_;
};

}  // namespace pipeweaver::planner
