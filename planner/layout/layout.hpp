// Which layout (tp x cp x pp x dp, ep, ZeRO stage) a model runs fastest in on a cluster: those that the GPUs, the model
// and the memory allow are judged by known schedules, the best of them by a short search.
//
//   bounds    what cannot hold its weights is refused before anything is priced; what a bound shows to be slower than
//             ten others is not tried
//   quick     the most loaded replica, the best bounds first
//   whole     the best few again, by their most loaded replicas and every setting of recomputation
//   search    these, and the user's own layout; of those within 0.5 % of the best the user's own, else the one with the
//             fewest chunks, then the smallest tp is taken
//
// Determinism  A function of the request, but for `time`: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/time.hpp"

#include <string>

namespace pipeweaver::planner {

/// Chooses among all tp x cp x pp x dp = GPUs with what is fixed: tp inside a node, dividing heads and feed-forward
/// widths; a layer of every module for each rank; a microbatch for each replica. `time` is asked between layouts.
/// Throws Error{limit} where nothing fits: which layout comes closest, its rank, what is short, and what would fit;
/// Error{input} where no layout agrees with the GPUs and the model. Pre: microbatches.
[[nodiscard]] LayoutChoice choose_layout(const LayoutRequest& request, const Executor& execute, const Time& time = {});

/// For a job whose layout was given: how long its batch takes in all layouts of the same GPUs as launch flags can run
/// it, its own among them and marked, judged quickly; `cp`: with so many context parallel GPUs, or any. in_layout()
/// makes the setup of each. Throws as choose_layout(). Pre: the batch has microbatches.
[[nodiscard]] LayoutChoice launched_layouts(const Job& job, const Batch& batch, const std::optional<std::int64_t>& cp,
                                            const Executor& execute, const Time& time = {});

/// What would fit where the request's layout does not: another layout on the same GPUs if there is one, else the fewest
/// GPUs (doubling up to 64 times as many) on which there is. A part of a sentence.
[[nodiscard]] std::string what_would_fit(const LayoutRequest& request, const Executor& execute);

}  // namespace pipeweaver::planner
