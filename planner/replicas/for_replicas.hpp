// The replicas of a plan, within one part of the budget.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/time.hpp"

#include <cstddef>
#include <functional>
#include <span>

namespace pipeweaver::planner {

/// Work on one replica, on that executor, within that time. It writes nothing that others read.
using ReplicaWork = std::function<void(std::size_t replica, const Executor& execute, const Time& time)>;

/// Works on these replicas, the first ones first, within `part` of `time`, each in an equal part of what the others
/// have left, less what those before took beyond theirs. Where they are as many as threads, a multiple, or more than
/// twice as many, they go side by side, each on one thread; no result depends on that. Of several errors the first by
/// `replicas` is thrown.
void for_replicas(std::span<const std::size_t> replicas, const ReplicaWork& work, const Executor& execute,
                  const Time& time, double part);

}  // namespace pipeweaver::planner
