// The memory modes that schedules can use at all: all that bounds count, and all that a search is guided by.
//
// A mode of a pair *fits* if its rank has room for the pair alone in it: for held + forward_transient while the forward
// runs, and for held + transient while the backward does. (Its weight gradient takes nothing more.)
//
// Proof that no schedule uses another one. Take a rank on which no task without a pair gives back more than it takes.
// At every moment each of its pairs, and each other task, holds 0 bytes or more there, so the rank holds no less than
// any one of them; and while a pair's forward or backward runs, the pair holds what is said above.
//   All modes fit where a task without a pair gives back more than it takes, and where a rank has no capacity. So do
// all modes of a pair of which none fits: then there is no schedule, and every bound holds.
// Tried         modes that do not fit beside what every schedule holds at that moment by precedence alone (earlier
//               chunks and items of the task's own microbatch): on none of 22 problems did a bound grow.
#pragma once

#include "search/instance/flat.hpp"

#include <cstdint>
#include <vector>

namespace pipeweaver::search {

/// Per entry of flat.cost_table whether the mode fits. Pre: ranks, pairs and costs of `flat` are there.
[[nodiscard]] std::vector<std::uint8_t> fitting_modes(const Flat& flat);

}  // namespace pipeweaver::search
