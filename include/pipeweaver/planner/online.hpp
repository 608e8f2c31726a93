// Plans for a job that runs: batch after batch on one partition (the weights lie where they lie), first a plan without
// a search, ready soon, then the best that is found until the caller needs it.
//
// Threads      any number of calls at once.
// Determinism  plan_by_policy() is a function of its arguments; plan_online() with `max_rounds` is one of them, too.
#pragma once

#include "pipeweaver/planner/plan.hpp"

#include <functional>
#include <string_view>

namespace pipeweaver::planner {

/// The step as `policy` runs it, on the partition where that is fastest; without a name the fastest policy. No search;
/// no PyTorch schedule (why_not says so) and no replays under wrong costs. With a partition given, on that alone.
/// Throws Error{input} for an unknown policy, Error{limit} where it applies on no partition (why, of each), and as
/// make_plan().
[[nodiscard]] Plan plan_by_policy(const Request& request, const costdb::CostDatabase& costs, const Executor& execute,
                                  std::string_view policy = {},
                                  const std::optional<partition::Partition>& partition = std::nullopt);

/// Whether backwards are worth splitting where `plan` is the first plan of a job. Trying both takes a part of the time
/// that is known beforehand, and a running job does not know how long a search may last.
[[nodiscard]] Split split_like(const Plan& plan);

/// Is handed a plan that runs, while a better one is searched for.
using OnDraft = std::function<void(Plan)>;

/// plan_by_policy() on `partition`, given to `draft`; then searches, replica after replica, the one that takes longest
/// first, for what `allowance` leaves each. Where a search is told to stop at once the draft's schedule stays. As
/// plan_by_policy() there is no PyTorch schedule and no comparison under wrong costs.
[[nodiscard]] Plan plan_online(const Request& request, const partition::Partition& partition,
                               const costdb::CostDatabase& costs, const Executor& execute, const Allowance& allowance,
                               const OnDraft& draft = {});

}  // namespace pipeweaver::planner
