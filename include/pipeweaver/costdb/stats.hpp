// What a database holds, as rows.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::costdb {

struct AxisRange {
    std::string name;
    std::int64_t low = 0, high = 0;
    std::size_t values = 0;  ///< different ones
};

/// The points of one operator, kind and source.
struct StatsRow {
    std::string op, kind;  ///< as in evaluate.hpp, with elementwise
    std::string source, origin, licence;
    std::size_t points = 0;
    bool transferred = false;  ///< carried over from another device
    std::vector<AxisRange> axes;
};

/// Sorted by operator, kind and the order of sources.
[[nodiscard]] std::vector<StatsRow> stats(const Measurements& points);

}  // namespace pipeweaver::costdb
