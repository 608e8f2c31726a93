// How long a point's step takes launched kernel by kernel, where its recipe does not say how layers are launched.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/units.hpp"
#include "pipeweaver/planner/layout_choice.hpp"

#include <optional>

namespace pipeweaver::capacity {

/// The far end of the step of that layout, which takes `near` by the launch flags that the request judges (planner/
/// host_bound.hpp). It is one layout's, so no clock ends it: what is kept of a point depends on none. None: none is to
/// be told, or nothing fits.
[[nodiscard]] std::optional<Duration> far_by_flags(planner::LayoutRequest request, const planner::LayoutAndZero& as,
                                                   Duration near, const Executor& execute);

}  // namespace pipeweaver::capacity
