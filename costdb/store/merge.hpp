// Points with equal keys as one.
#pragma once

#include "costdb/point_tables.hpp"
#include "costdb/store/store.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

namespace pipeweaver::costdb {

/// One point for each key, with the median of its latencies. Returns how many points that cost.
template <class Point>
std::size_t merge_equal(std::vector<Point>& points) {
    const auto before = points.size();
    std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
        return std::tuple(key_of(a), a.latency_ns) < std::tuple(key_of(b), b.latency_ns);
    });
    std::vector<Point> merged;
    for (std::size_t first = 0; first < points.size();) {
        auto last = first;
        while (last < points.size() && key_of(points[last]) == key_of(points[first])) ++last;
        merged.push_back(points[first + (last - first - 1) / 2]);
        first = last;
    }
    points = std::move(merged);
    return before - points.size();
}

inline std::size_t merge_equal(Measurements& points) {
    std::size_t fewer = 0;
    for_each_table([&]<class Rows>(Rows) { fewer += merge_equal(points.*Rows::points); });
    return fewer;
}

}  // namespace pipeweaver::costdb
