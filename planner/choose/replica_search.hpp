// The searches of all replicas of a plan, within one share of the budget.
#pragma once

#include "planner/choose/split_search.hpp"

#include <functional>
#include <span>

namespace pipeweaver::planner {

/// A search of one replica, on that executor, within those limits. It writes nothing that others read.
using ReplicaSearch = std::function<void(std::size_t replica, const Executor& execute, const Limits& limits)>;

/// Searches these replicas, the first ones first, in equal parts of a share of the budget. Where they are twice as many
/// as threads or more they are searched side by side, each on one thread; no result depends on that. `allowance` and
/// what it gives are asked by one thread at a time. Of several errors the first by `replicas` is thrown.
void search_replicas(std::span<const std::size_t> replicas, const ReplicaSearch& search, const Executor& execute,
                     const Allowance& allowance, double share);

}  // namespace pipeweaver::planner
