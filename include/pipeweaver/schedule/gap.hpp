// How far a makespan can be from optimal at most. The only place in the project that computes a gap.
#pragma once

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/units.hpp"

namespace pipeweaver::schedule {

/// (found - bound) / bound: 0 is proven best. Pre: bound > 0.
[[nodiscard]] inline double relative_gap(Duration found, Duration bound) {
    PIPEWEAVER_ASSERT(bound > Duration::zero());
    return static_cast<double>((found - bound).count()) / static_cast<double>(bound.count());
}

}  // namespace pipeweaver::schedule
