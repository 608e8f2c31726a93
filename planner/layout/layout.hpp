// Which layout (tp x pp x dp) a model runs fastest in on a cluster: every one that the GPUs and the model allow is
// emulated quickly, by policies without a search.
//
// Determinism  A function of the request: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/layout_choice.hpp"

#include <string>

namespace pipeweaver::planner {

/// Tries every tp x pp x dp = GPUs / cp with what is fixed: tp inside a node, dividing heads and feed-forward widths; a
/// layer of every module for each rank; a microbatch for each replica. Partitions dip and balanced, policies
/// dual-queue, 1f1b and gpipe. Throws Error{limit} where nothing fits: which layout comes closest, its rank, what is
/// short, and what would fit; Error{input} where no layout agrees with the GPUs and the model. Pre: microbatches.
[[nodiscard]] LayoutChoice choose_layout(const LayoutRequest& request, const Executor& execute);

/// What would fit where the request's layout does not: another layout on the same GPUs if there is one, else the fewest
/// GPUs (doubling up to 64 times as many) on which there is. A part of a sentence.
[[nodiscard]] std::string what_would_fit(const LayoutRequest& request, const Executor& execute);

}  // namespace pipeweaver::planner
