// Plans one step: every partition with every policy, a search where it pays, the best of all taken.
//
// Determinism  With `max_rounds` the plan is a function of the request. With an end in time, each search reports
//              the rounds it was given.
#pragma once

#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/request.hpp"
#include "pipeweaver/planner/time.hpp"

#include <string_view>

namespace pipeweaver::planner {

/// Pre: at least one microbatch for each replica. Throws Error{limit} if no partition fits (rank, bytes short), or the
/// request's target has no schedule, and what the modules below throw.
[[nodiscard]] Plan make_plan(const Request& request, const Executor& execute, const Time& time,
                             const Scope& scope = {});

/// The step as the policy runs it, on the partition where that is fastest; without a name the fastest policy. Neither
/// searches, nor other targets, nor replays under wrong costs. Throws Error{input} for an unknown policy, Error{limit}
/// where it applies on no partition (why, of each), and as make_plan().
[[nodiscard]] Plan plan_by_policy(const Request& request, const Executor& execute, std::string_view policy = {},
                                  const Scope& scope = {});

/// The schedule problem of all microbatches in partition dip, without a plan. Pre: one replica. Throws Error{limit} if
/// it does not fit.
[[nodiscard]] Cut dip_problem(const Request& request);

}  // namespace pipeweaver::planner
