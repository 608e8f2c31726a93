// What a study answers, as files of its folder.
//
//   results.csv   every point of every cell           report.html   the answer for a person, one page
//   rows.csv      each cell's best point, ranked      answer.json   the same for a program
//   rows/N.sh     the `pipeweaver plan` of row N      rows/N.yaml   row N as a study of one point
//
// Determinism  A function of the study and the results of its cells, unless time ends a search.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/capacity/ranking.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

/// Is told how many rows of how many are planned.
using OnPlanned = std::function<void(std::size_t done, std::size_t of)>;

/// rank() and plan_best().
[[nodiscard]] Ranking answer(const Study& study, const std::vector<CellResult>& results, const Executor& execute,
                             const planner::Time& time, const OnPlanned& on_planned = {});

/// The files, with paths below `folder`.
[[nodiscard]] std::vector<FileToWrite> answer_files(const Study& study, const std::vector<CellResult>& results,
                                                    const Ranking& ranking, const std::filesystem::path& folder);

/// Removes the files of rows that an earlier answer had and these do not. Throws Error{io}.
void remove_old_rows(const std::vector<FileToWrite>& files, const std::filesystem::path& folder);

/// The row as a study of its one point.
[[nodiscard]] std::string point_study(const Study& study, const std::vector<CellResult>& results, const Row& row);

}  // namespace pipeweaver::capacity
