#include "costdb/tables/elementwise_table.hpp"

#include "costdb/tables/calibration.hpp"

#include <algorithm>
#include <map>

namespace pipeweaver::costdb {

ElementwiseTable::ElementwiseTable(const std::vector<ElementwisePoint>& measured) {
    std::map<Key, std::vector<LinkPoint>> parts;
    for (const auto& p : measured)
        parts[{p.kind, p.pass}].push_back({p.traffic_bytes, p.latency_ns, p.spread_permille});
    for (auto& [key, points] : parts) curves_.emplace_back(key, Curve(std::move(points)));
}

Answer ElementwiseTable::cost(const DeviceFacts& device, const Elementwise& query) const {
    const auto error = [&](Region region) { return error_percent(Subject::elementwise, device.family, region, false); };
    const Key key{query.kind, query.pass};
    const auto found = std::find_if(curves_.begin(), curves_.end(), [&](const auto& c) { return c.first == key; });
    if (found != curves_.end()) {
        const auto reading = found->second.at(query.traffic.count);
        if (reading.basis == Basis::exact)
            return {reading.ns, Basis::exact, exact_error_percent(reading.spread_permille)};
        if (reading.basis == Basis::interpolated) return {reading.ns, Basis::interpolated, error(Region::on_grid)};
    }
    constexpr double share_of_bandwidth = 0.8;
    return {1e3 * static_cast<double>(query.traffic.count) / (share_of_bandwidth * device.bytes_per_us),
            Basis::modelled, error(Region::modelled)};
}

}  // namespace pipeweaver::costdb
