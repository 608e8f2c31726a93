// Backwards split into input gradient I and weight gradient W, and put together again.
//
// Only I is waited for by the stage before; W fills what would be a bubble. P. Qi, X. Wan, G. Huang, M. Lin, "Zero
// Bubble Pipeline Parallelism", ICLR 2024 (arXiv 2401.10241).
//
//   whole     F F B B          split    F F I W I W      W fills a bubble    F I F I . W W
//
// Ids          I keeps the id of its B, all other tasks keep theirs; the W come after them in the order of their pairs.
// Times        I and W together take at least as long as B: traffic that B hides beside products may be exposed in them
//              (recipe.hpp, TensorOverlap). B in place of an I with its W directly after it ends no later.
// Memory       I takes more than B while it runs (stage_memory.hpp), and what W needs is held until W ends.
// Not split    a backward whose input gradient nobody waits for (raw data, or only frozen modules before it): its B can
//              wait as a W could. A backward without weight gradient (frozen modules).
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <vector>

namespace pipeweaver::emulator {

/// Per pair, whether to split its backward.
using SplitChoice = std::vector<bool>;

/// Every pair whose backward can be split.
[[nodiscard]] SplitChoice splittable(const StepProblem& step);

/// Splits those backwards of `step` that are chosen; an input gradient may take more memory than its whole backward,
/// and so not fit its rank. Pre: none is split yet; `choice` has an entry for each pair, true only where splittable()
/// is.
[[nodiscard]] BuiltStep split_backwards(const StepProblem& step, const SplitChoice& choice);

/// A schedule of `split` = split_backwards(whole, ...) for one of `whole`: each W directly after its I.
[[nodiscard]] schedule::Schedule with_weights(const schedule::Problem& split, const schedule::Schedule& whole);

/// Per task: an I whose W runs directly after it, and nothing that waits for I starts before it could with B: it may
/// run as B without any start being later. Pre: `replay` is of `schedule` and completed.
[[nodiscard]] std::vector<bool> joinable(const schedule::Problem& problem, const schedule::Schedule& schedule,
                                         const schedule::Replay& replay);

/// The pairs that a schedule of `split` gains by being split: whose I is not joinable().
[[nodiscard]] SplitChoice needed(const schedule::Problem& split, const schedule::Schedule& schedule,
                                 const schedule::Replay& replay);

/// `schedule` of `split` as one of `kept` = split_backwards(whole, keep), the other backwards whole again. Pre: `keep`
/// is true wherever needed() is.
[[nodiscard]] schedule::Schedule merged(const schedule::Problem& split, const schedule::Schedule& schedule,
                                        const schedule::Problem& kept);

}  // namespace pipeweaver::emulator
