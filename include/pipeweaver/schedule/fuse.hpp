// Pipelines of several models that train on the same ranks at once, in opposite directions: each fills the other's
// bubbles (RLHFuse, arXiv 2409.13221, section 5; Chimera, arXiv 2107.06925).
//
//   rank         0   1   2   3
//   the first    0 > 1 > 2 > 3
//   beside it    1 < 0   1 < 0      two pipelines of two ranks, each on ranks next to each other
//
// Memory       of a rank: what each holds all the time, together; its capacity is the smallest that any says.
// Tails        of a rank: what each must do after its last task, one after the other.
#pragma once

#include "pipeweaver/schedule/problem.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <span>
#include <string>

namespace pipeweaver::schedule {

/// A pipeline with a schedule of it alone.
struct Pipeline {
    std::string name;  ///< comes before its labels and modules
    Problem problem;
    Schedule schedule;
};

struct Fused {
    Problem problem;
    Schedule in_turn;  ///< each rank does all of the first before all that is beside it; may exceed its memory
};

/// The first pipeline, with all others beside it. Throws Error{input} where there is none beside it, or their ranks
/// together are not as many as the first's.
[[nodiscard]] Fused fuse(std::span<const Pipeline> pipelines);

}  // namespace pipeweaver::schedule
