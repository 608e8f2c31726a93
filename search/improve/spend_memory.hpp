// Modes along an order that stays: where memory is left, passes take modes that need more of it and less time.
//
// A rank's memory follows from its own order, so what fits is known exactly: for a pair from its forward to its last
// backward. Pairs go by the time that they save for the memory that they take and how long they take it; each takes the
// fastest mode for which there is room by then.
#pragma once

#include "search/instance/candidate.hpp"

namespace pipeweaver::search {

/// The candidate's order under such modes, where that is better; `current` stands there afterwards. Of a problem where
/// every pair has its fastest mode already nothing changes. Time O(modes * tasks * tasks between a forward and its
/// backward on a rank). Pre: the candidate is valid and fits.
void spend_memory(const Flat& flat, IncrementalSchedule& current, Candidate& candidate);

/// Whether the strategy spends memory at all: in small problems annealing goes through the modes by itself, and from
/// orders whose memory is spent it came to worse ends.
[[nodiscard]] bool worth_spending(const Flat& flat);

}  // namespace pipeweaver::search
