// A row as options of `pipeweaver plan`, and what that makes of it.
#pragma once

#include "pipeweaver/capacity/row.hpp"
#include "pipeweaver/planner/plan_options.hpp"

namespace pipeweaver::capacity {

/// The cell's options with the layout.
[[nodiscard]] OptionValues options_of(const Cell& cell, const planner::LayoutAndZero& as);

/// The cell's job in the layout, as these options ask for it.
[[nodiscard]] planner::PlanConfiguration job_in(const Cell& cell, const planner::LayoutAndZero& as);

/// Plans the row as these options say, without opponents and other targets; fills in `planned`, or why not.
void plan_row(const Cell& cell, const planner::LayoutAndZero& as, Row& row, const Executor& execute,
              const planner::Time& time);

}  // namespace pipeweaver::capacity
