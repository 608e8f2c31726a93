// The axes of a study, and the cells that they span.
#pragma once

#include "pipeweaver/capacity/study.hpp"
#include "pipeweaver/planner/plan_options.hpp"

namespace pipeweaver::capacity {

/// One choice of every axis, the last axis turning fastest; jobs and keys are not filled in. Throws Error{input}.
[[nodiscard]] std::vector<Cell> cells_of(const Json& root);

/// The files that options name, sorted.
[[nodiscard]] std::vector<std::string> files_of(const OptionValues& asked);

/// Makes the cells' jobs. Throws Error{input} where a model, a recipe, a loader or a data set is unknown, where no
/// model of the study reads a data set, or where options contradict each other.
void make_jobs(Study& study);

/// Throws Error{input} where a study has no point, or more than its limit.
void require_points(const Json& root, const Study& study);

}  // namespace pipeweaver::capacity
