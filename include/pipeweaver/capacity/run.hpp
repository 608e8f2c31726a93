// Running a study's cells: in memory, or in a folder where what is done stays and is not done again.
//
//   DIR/study.json        the study (Study::document): a folder belongs to one
//   DIR/cells/NAME.json   a cell's result (file_name()), written whole or not at all
//
// Threads      cells are judged beside each other.
// Determinism  The files of a cell are the same whoever ran it, when, and beside what.
#pragma once

#include "pipeweaver/capacity/cell.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

struct RunProgress {
    std::size_t cells = 0, of = 0;  ///< done, those found in the folder included, and all
    std::size_t points = 0;         ///< of cells that were judged here
};

/// Is told of each cell that is done, by one thread at a time.
using OnCell = std::function<void(const RunProgress&)>;

/// Judges the cells of a shard; those that `time` cut off are left out, which the answer's holes say.
[[nodiscard]] std::vector<std::optional<CellResult>> run_cells(const Study& study, const Shard& shard,
                                                               const Executor& execute, const planner::Time& time,
                                                               const OnCell& on_cell = {});

/// The same in a folder, which it makes; cells that are there are read. Throws Error{input} where the folder is another
/// study's, Error{io}.
[[nodiscard]] std::vector<std::optional<CellResult>> run_cells_in(const std::filesystem::path& folder,
                                                                  const Study& study, const Shard& shard,
                                                                  const Executor& execute, const planner::Time& time,
                                                                  const OnCell& on_cell = {});

/// Throws Error{input} where the folder is another study's: of another name, or of none and not the same.
void require_folder_of(const Study& study, const std::filesystem::path& folder);

/// The study of a folder. Throws Error{io}, Error{input}.
[[nodiscard]] Study study_in(const std::filesystem::path& folder);

/// The results of all cells out of several folders of one study. Throws Error{input}: folders of other studies or
/// versions, damaged files, cells that none of them has (how many, and which first).
[[nodiscard]] std::vector<CellResult> merged(const Study& study, const std::vector<std::filesystem::path>& folders);

/// All results, where there are no holes. Throws Error{limit}, which says what is left.
[[nodiscard]] std::vector<CellResult> whole(std::vector<std::optional<CellResult>> results);

}  // namespace pipeweaver::capacity
