// Ranks rows again, once some of them are planned.
#pragma once

#include "pipeweaver/capacity/ranking.hpp"

namespace pipeweaver::capacity {

/// Orders the rows, chooses the answers, marks the front and the ties.
void rank_rows(const Study& study, Ranking& ranking);

}  // namespace pipeweaver::capacity
