// What a study answers, as files of its folder.
//
//   results.csv   every point of every cell           report.html   the answer for a person, one page
//   rows.csv      each cell's best point, ranked      answer.json   the same for a program
//   rows/N.sh     the `pipeweaver plan` of row N      rows/N.yaml   row N as a study of one point
//
// Results      are of all of the study's cells, in order; the ranking is theirs.
// Places       rows are numbered from 1 in the order of Ranking::rows, everywhere.
// Determinism  A function of the study and the results of its cells, unless time ends a search.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/capacity/ranking.hpp"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

/// Is told how many rows of how many are planned.
using OnPlanned = std::function<void(std::size_t done, std::size_t of)>;

/// rank() and plan_best().
[[nodiscard]] Ranking answer(const Study& study, const std::vector<CellResult>& results, const Executor& execute,
                             const planner::Time& time, const OnPlanned& on_planned = {});

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

/// The files, with paths below `folder`.
[[nodiscard]] std::vector<FileToWrite> answer_files(const Study& study, const std::vector<CellResult>& results,
                                                    const Ranking& ranking, const std::filesystem::path& folder);

/// Removes the files of rows that an earlier answer had and these do not. Throws Error{io}.
void remove_old_rows(const std::vector<FileToWrite>& files, const std::filesystem::path& folder);

}  // namespace pipeweaver::capacity
