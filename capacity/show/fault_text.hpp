// What faulty nodes leave of the rows' GPUs.
#pragma once

#include "pipeweaver/capacity/ranking.hpp"

#include <string>
#include <vector>

namespace pipeweaver::capacity::show {

/// A table of the first rows; empty where no faults are asked for or no network is known.
[[nodiscard]] std::string faults_text(const Study& study, const std::vector<CellResult>& results,
                                      const Ranking& ranking);

}  // namespace pipeweaver::capacity::show
