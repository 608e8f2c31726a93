// Plans for a job that runs: batch after batch on one partition (the weights lie where they lie), first a plan without
// a search, ready soon, then the best that is found until the caller needs it.
//
// Threads      plan() may be called from any thread, several at once.
// Determinism  plan_by_policy() is a function of its arguments; plan() with `max_rounds` of request and batch.
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

/// Is handed a plan that runs, while a better one is searched for.
using OnDraft = std::function<void(Plan)>;

/// plan_by_policy() on `partition`, given to `draft`; then searches, replica after replica, the one that takes longest
/// first, for what `allowance` leaves each. Where a search is told to stop at once the draft's schedule stays. As
/// plan_by_policy() there is no PyTorch schedule and no comparison under wrong costs.
[[nodiscard]] Plan plan_online(const Request& request, const partition::Partition& partition,
                               const costdb::CostDatabase& costs, const Executor& execute, const Allowance& allowance,
                               const OnDraft& draft = {});

}  // namespace pipeweaver::planner
