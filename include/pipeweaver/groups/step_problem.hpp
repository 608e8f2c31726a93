// A step on groups of GPUs as a schedule problem: the ranks of all groups, for searches and bounds.
//
// Tasks        a forward and a backward of each round on each stage of each group, on its slowest replica, as
//              allocation.hpp has them; none where no gradient comes. Edges run along the stages and over the bridges.
// Memory       base: weights, states, what passes need, two rounds of received messages at a bridge; held: of a round.
#pragma once

#include "pipeweaver/groups/placing.hpp"
#include "pipeweaver/schedule/problem.hpp"

namespace pipeweaver::groups {

/// Ranks are numbered group by group, rounds as microbatches. Its makespan under the order of allocation.hpp is the
/// placing's step, or less where no gradient comes to a group, which then waits for none. `capacity`: usable bytes of a
/// GPU. Pre: made by on_own_gpus() or on_shared_gpus().
[[nodiscard]] schedule::Problem problem_of(const Placing& placing, Bytes capacity);

}  // namespace pipeweaver::groups
