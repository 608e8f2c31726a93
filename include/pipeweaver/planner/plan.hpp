// Plans one step on the job's partition: every policy, a search of every replica, and what both are held against.
//
// Determinism  Without an end in time the plan is a function of job, batch and what is wanted. With one, each search
//              reports the rounds it was given.
#pragma once

#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/time.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A plan; or why there is none.
struct MadePlan {
    std::optional<Plan> plan{};
    std::string why_not{};  ///< of the first replica that has none (rank, bytes short), or of the job's target
};

/// Plans the batch. Where passes may offload, the plan in which none may is made, too, and taken where the other is no
/// faster. Pre: at least one microbatch for each replica. Throws what the modules below throw.
[[nodiscard]] MadePlan try_plan(const Job& job, const Batch& batch, const Executor& execute, const Time& time,
                                const Wanted& wanted = {});

/// The plan where one is needed. Throws Error{limit} if there is none (why), and as try_plan().
[[nodiscard]] Plan make_plan(const Job& job, const Batch& batch, const Executor& execute, const Time& time,
                             const Wanted& wanted = {});

/// The plan without a search on the partition where that is fastest: the job's, or of those that runtimes of one chain
/// are given the one that `wanted.policies` run fastest. Throws Error{limit} where they apply on none (why, of each),
/// and as try_plan().
[[nodiscard]] Plan plan_without_search(const Job& job, const Batch& batch, const Executor& execute, Wanted wanted);

/// The steps of some replicas of a batch on a partition, built and no more. Throws Error{limit} where one does not
/// fit, Error{input} where one is too large to plan.
[[nodiscard]] std::vector<Cut> steps_of(const Job& job, const Batch& batch, const partition::Partition& partition,
                                        const std::vector<std::size_t>& replicas, const Executor& execute);

/// What a budget or a signal left out of a plan.
struct LeftOut {
    std::string what;  ///< a phrase
    double part = 0;   ///< of a whole plan's time, about
};

/// In the order of a plan's work; of a plan that was interrupted that comes first.
[[nodiscard]] std::vector<LeftOut> left_out(const Plan& plan);

/// What passes of the plan recompute that is a launched word alone, which executors of action lists do not know, see
/// emulator::is_for_plans(); empty: they know it all.
[[nodiscard]] std::string launched_alone(const Plan& plan);

}  // namespace pipeweaver::planner
