// Points by the table that they came from.
#include "costdb/point_tables.hpp"
#include "costdb/store/store.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::costdb {

namespace {

bool is_empty(const Measurements& points) {
    bool empty = true;
    for_each_table([&]<class Rows>(Rows) { empty = empty && (points.*Rows::points).empty(); });
    return empty;
}

}  // namespace

std::vector<SourcedMeasurements> by_origin(const Measurements& points) {
    std::vector<SourcedMeasurements> sources;
    for (const auto& origin : points.origins) {
        sources.push_back({origin.file, origin.origin, origin.licence, origin.sha256, {}, origin.transferred_permille});
        sources.back().points.device = points.device;
    }
    for_each_table([&]<class Rows>(Rows) {
        for (const auto& point : points.*Rows::points)
            (sources[static_cast<std::size_t>(point.origin)].points.*Rows::points).push_back(point);
    });
    std::erase_if(sources, [](const auto& source) { return is_empty(source.points); });
    for (auto& source : sources) {  // borrowed links stay the other device's
        if (!points.links_of.empty() && !source.points.point_to_point.empty()) source.points.device = points.links_of;
        if (!points.collectives_of.empty() && !source.points.collective.empty())
            source.points.device = points.collectives_of;
    }
    if (sources.empty() && (points.in_situ || !points.pass_factors.empty())) {
        sources.push_back({"", points.in_situ ? points.in_situ->note : "measured run", "", "", {}});
        sources.back().points.device = points.device;
    }
    for (auto& source : sources)
        if (source.points.device == points.device) {
            source.points.in_situ = points.in_situ;
            source.points.pass_factors = points.pass_factors;
        }
    return sources;
}

std::vector<SourcedMeasurements> parts_of(const std::vector<SourcedMeasurements>& sources) {
    std::vector<SourcedMeasurements> parts;
    for (const auto& source : sources) {
        if (source.points.origins.empty()) {
            parts.push_back(source);
            continue;
        }
        for (auto& part : by_origin(source.points)) {
            if (part.sha256.empty()) part.sha256 = source.sha256;
            parts.push_back(std::move(part));
        }
    }
    return parts;
}

}  // namespace pipeweaver::costdb
