// A row of a study: as options of `pipeweaver plan`, what a search makes of it, and what it is worth to who pays.
#pragma once

#include "pipeweaver/capacity/ranking.hpp"
#include "pipeweaver/planner/input.hpp"
#include "pipeweaver/planner/plan_options.hpp"

namespace pipeweaver::capacity {

/// By what a row is cheap: USD where all rows have prices, else GPU-hours, else GPUs times step.
[[nodiscard]] double cost_of(const Study& study, const Row& row, bool has_prices);

/// By what it is soon.
[[nodiscard]] double time_of(const Row& row);

/// Whether the row's run, `factor` times as long and as dear, keeps within the constraints.
[[nodiscard]] bool meets(const Constraints& limits, const Row& row, double factor);

/// Fills in what follows from the row's step.
void judge_by_step(const Study& study, const CellFacts& facts, Row& row);

/// What the loader makes of a step on so many replicas.
[[nodiscard]] RowInput row_input(const planner::Input& input, std::int64_t replicas);

/// The same of the point as launch flags run it; none: the cell has no loader. Throws Error where none is replayed.
[[nodiscard]] std::optional<RowInput> input_by_flags(const Cell& cell, const Point& point);

/// Of the cores of all replicas' loaders those that no GPU's price includes, in whole nodes. 0: no price is said.
[[nodiscard]] std::int64_t cores_to_buy(const Study& study, const Cell& cell, std::int64_t cores);

/// Of the cell's judged points, or of those that `takes` takes, the fastest by launch flags; none: there are none.
[[nodiscard]] std::optional<std::size_t> fastest_point(const CellResult& result, bool (*takes)(const Point&) = nullptr);

/// The row of a cell's point.
[[nodiscard]] Row row_of(const Study& study, const CellResult& result, std::size_t place);

/// The cell's options with the layout.
[[nodiscard]] OptionValues options_of(const Cell& cell, const planner::LayoutAndZero& as);

/// The cell's job in the layout, as these options ask for it.
[[nodiscard]] planner::PlanConfiguration job_in(const Cell& cell, const planner::LayoutAndZero& as);

/// Plans the row as these options say, without opponents and other targets; fills in `planned`, or why not.
void plan_row(const Cell& cell, const planner::LayoutAndZero& as, Row& row, const Executor& execute,
              const planner::Time& time);

/// Orders the rows, chooses the answers, marks the front and the ties.
void rank_rows(const Study& study, Ranking& ranking);

}  // namespace pipeweaver::capacity
