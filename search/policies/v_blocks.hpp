// Orders with less memory than ZB-V: one microbatch's passes as a block of unit slots, repeated every six. A rank
// holds a microbatch from its forward to its weight gradient, so what a block holds follows from how fast it goes down
// the ranks and up again.
//
//   v-min, one block, P = 4    rank 0  |F . . . . . . F I . . . . . . I|
//                              rank 1  |. F . . . . F . . I . . . . I .|
//                              rank 2  |. . F . . F . . . . I . . I . .|
//                              rank 3  |. . . F F . . . . . . I I . . .|   and each W in a slot that is free
//
// Both ends of a step have slots that no microbatch needs: there passes come as early as what they wait for and the
// memory of the blocks allow, and behind the last forward each I before any W.
#pragma once

#include "search/policies/orders.hpp"

namespace pipeweaver::search {

/// V-Min: every pass goes on a slot later on the next rank; at most (P + 4) / 3 microbatches are held. P. Qi, X. Wan,
/// N. Amar, M. Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024 (arXiv 2405.15362), section 3. For
/// the problems of zb_v_order().
[[nodiscard]] Order v_min_order(const Flat& flat);

/// V-Half, of the same: one slot and two in turn; P / 2 + 1 microbatches are held at most.
[[nodiscard]] Order v_half_order(const Flat& flat);

}  // namespace pipeweaver::search
