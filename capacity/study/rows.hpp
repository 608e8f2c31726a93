// A row of a study, and what it is worth to who pays.
#pragma once

#include "pipeweaver/capacity/row.hpp"

namespace pipeweaver::capacity {

/// By what a row is cheap: USD where all rows have prices, else GPU-hours, else GPUs times step.
[[nodiscard]] double cost_of(const Study& study, const Row& row, bool has_prices);

/// By what it is soon.
[[nodiscard]] double time_of(const Row& row);

/// Whether the row's run, `factor` times as long and as dear, keeps within the constraints.
[[nodiscard]] bool meets(const Constraints& limits, const Row& row, double factor);

/// Fills in what follows from the row's step.
void judge_by_step(const Study& study, const CellFacts& facts, Row& row);

/// The row of a cell's point.
[[nodiscard]] Row row_of(const Study& study, const CellResult& result, std::size_t place);

}  // namespace pipeweaver::capacity
