// Orders that use the split of a backward into input gradient I and weight gradient W: nothing waits for W but memory,
// so it fills what would be a bubble.
//
//   zb-h1, all passes as long      rank 0  |F0 F1 F2 .. .. I0 W0 I1 W1 I2 W2|
//                                  rank 1  |.. F0 F1 .. I0 F2 I1 W0 I2 W1 W2|
//                                  rank 2  |.. .. F0 I0 F1 I1 F2 I2 W0 W1 W2|
#pragma once

#include "search/policies/orders.hpp"

namespace pipeweaver::search {

/// ZB-H1: as 1F1B with I in the place of the backward; rank p of P postpones its first p weight gradients, so that
/// every rank holds as many microbatches as 1F1B's first. With equal times the bubble is (P - 1) (F + I - W). P. Qi, X.
/// Wan, G. Huang, M. Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024 (arXiv 2401.10241), section 2.1. For problems
/// where every rank has the tasks of one stage and all backwards are split that anything waits for.
[[nodiscard]] Order zb_h1_order(const Flat& flat);

/// ZB-V: two stages on each rank, stage s < P on rank s and stage 2 P - 1 - s on the same, so that the last forward is
/// beside the first. P. Qi, X. Wan, N. Amar, M. Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024
/// (arXiv 2405.15362); the table is that of PyTorch's ScheduleZBVZeroBubble. For such problems with all backwards
/// split that anything waits for.
[[nodiscard]] Order zb_v_order(const Flat& flat);

}  // namespace pipeweaver::search
