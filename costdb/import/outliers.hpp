// Measured points that look wrong beside the others of their table. The rule is in import.hpp.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"

#include <string>
#include <vector>

namespace pipeweaver::costdb {

/// A sentence for each, such as "gemm bf16 forward 128x256x512: 7.250 us, 3.1 times what its neighbours say".
/// Pre: no two points with equal keys, points.device is a known device
[[nodiscard]] std::vector<std::string> outliers(const Measurements& points);

}  // namespace pipeweaver::costdb
