// How a job packs its batches.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"

#include <vector>

namespace pipeweaver::planner {

/// Of requests that differ by their packing alone, the one whose sample's steps are shortest on the partition of the
/// first, which it is given: the first itself unless another's are a per cent shorter. (A partition chosen anew for
/// each would differ by more than packings do.) A function of the requests: whoever plans one replica alone packs
/// alike.
[[nodiscard]] Request choose_packing(std::vector<Request> packed, const Executor& execute);

}  // namespace pipeweaver::planner
