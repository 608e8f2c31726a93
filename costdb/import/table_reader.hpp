// CSV tables of measurements -> points, strictly. The kinds of tables are listed in import.hpp.
#pragma once

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/costdb/measurements.hpp"

namespace pipeweaver::costdb {

/// Appends the points of `table` to `into`, whose device must be set. Throws Error{input}: file:line: column: what.
void read_points(const CsvTable& table, Measurements& into);

}  // namespace pipeweaver::costdb
