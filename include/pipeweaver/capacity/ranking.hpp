// What the points of a study mean for who pays: each cell's best layout with its days and its price, those that meet
// the constraints, the fewest GPUs, the cheapest and the fastest of them, and what the costs' own errors cannot tell
// apart.
//
//   row     the fastest point of a cell
//   front   rows than which none is both sooner and cheaper; without a price GPU-hours stand for it, without a run's
//           tokens GPU time
//   tied    a row that is as good as the best of its kind within the errors of both
//
// Determinism  A function of the study and the results of its cells.
#pragma once

#include "pipeweaver/capacity/row.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

/// The rows that answer; places among Ranking::rows.
struct Answers {
    std::optional<std::size_t> fewest, cheapest, fastest;
};

struct Ranking {
    std::vector<Row> rows;    ///< those that meet the constraints first, each part the cheapest first
    Answers answers;          ///< of those that meet the constraints
    std::string none_meets;   ///< not empty: no row does; the nearest, and which constraint binds
    bool has_prices = false;  ///< every row's run has a price
    std::size_t judged = 0, bounded = 0, refused = 0;  ///< points
};

/// Ranks the cells' best points. Pre: results are of all cells, in order.
[[nodiscard]] Ranking rank(const Study& study, const std::vector<CellResult>& results);

/// Plans rows with searches: the answers, then the best others, `study.planned` in all; ranks again until the answers
/// are planned. `time` ends it early: what is left keeps its flags' step.
void plan_best(const Study& study, const std::vector<CellResult>& results, Ranking& ranking, const Executor& execute,
               const planner::Time& time, const std::function<void(std::size_t done, std::size_t of)>& on_done = {});

}  // namespace pipeweaver::capacity
