// The far ends of rungs' steps, where their recipe does not say how layers are launched (host_bound.hpp): each in its
// own order, on its own microbatches. None: none is to be told.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/host_bound.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/targets.hpp"

namespace pipeweaver::planner {

/// Of what flags launch and the target runs, whose step is `near`: of the replicas that take longest.
[[nodiscard]] std::optional<HostBound> far_end(const LaunchedWay& way, const Target& target, Duration near,
                                               const Executor& execute);

/// Of the plan itself: of its slowest replica, and of those that are examined.
[[nodiscard]] std::optional<HostBound> far_end(const Plan& plan, const emulator::Setup& setup);

/// Of the schedule that a target has of its own, whose step is `near`. Pre: there is one.
[[nodiscard]] std::optional<HostBound> far_end(const TargetPlan& plan, const emulator::Setup& setup, Duration near);

}  // namespace pipeweaver::planner
