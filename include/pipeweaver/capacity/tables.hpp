// What a study found, for people and for other programs: tables, the answer in a terminal, as JSON, and as a page.
//
// Results      are of all of the study's cells, in order; the ranking is theirs.
// Places       rows are numbered from 1 in the order of Ranking::rows, everywhere.
// Determinism  functions of their arguments: equal ones give equal bytes, whatever was computed where.
#pragma once

#include "pipeweaver/capacity/ranking.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace pipeweaver::capacity {

/// A line for each point of each cell, with its bound or step and what a training run takes at that pace. A cell that
/// cannot be asked has a line without a layout. Times in seconds, memory in GiB; docs/capacity-study.md has the
/// columns.
[[nodiscard]] std::string results_csv(const Study& study, const std::vector<CellResult>& results);

/// A line for each row of the ranking, with the command that plans it.
[[nodiscard]] std::string rows_csv(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking);

/// For a terminal: the answers and the best other rows, the arithmetic of the first, what is tied, a Pareto picture.
[[nodiscard]] std::string answer_text(const Study& study, const std::vector<CellResult>& results,
                                      const Ranking& ranking);

/// The same for programs, with all rows: "pipeweaver-capacity/1".
[[nodiscard]] nlohmann::ordered_json answer_json(const Study& study, const std::vector<CellResult>& results,
                                                 const Ranking& ranking);

/// One page that loads nothing from outside: the answers, plots, all rows with their commands, all cells.
[[nodiscard]] std::string report_html(const Study& study, const std::vector<CellResult>& results,
                                      const Ranking& ranking);

}  // namespace pipeweaver::capacity
