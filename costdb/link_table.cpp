#include "costdb/link_table.hpp"

#include "costdb/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace pipeweaver::costdb {

Curve::Curve(std::vector<std::pair<std::int64_t, std::int64_t>> points) : points_(std::move(points)) {
    std::sort(points_.begin(), points_.end());
}

Curve::Reading Curve::at(std::int64_t bytes) const {
    const auto above = std::lower_bound(points_.begin(), points_.end(), std::pair{bytes, std::int64_t{0}});
    if (above == points_.end()) {
        const auto [last, ns] = points_.back();
        return {static_cast<double>(ns) * static_cast<double>(bytes) / static_cast<double>(last), Basis::extrapolated};
    }
    if (above->first == bytes) return {static_cast<double>(above->second), Basis::exact};
    if (above == points_.begin()) return {static_cast<double>(above->second), Basis::extrapolated};
    const auto below = std::prev(above);
    const auto log_of = [](std::int64_t x) { return std::log(static_cast<double>(x)); };
    const double t = (log_of(bytes) - log_of(below->first)) / (log_of(above->first) - log_of(below->first));
    return {std::exp(log_of(below->second) + t * (log_of(above->second) - log_of(below->second))), Basis::interpolated};
}

Curve Curve::without_outliers() const {
    constexpr std::size_t reach = 4;
    constexpr double limit = 1.5;
    std::vector<std::pair<std::int64_t, std::int64_t>> kept;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        std::vector<std::int64_t> around;
        for (std::size_t j = i - std::min(i, reach); j <= std::min(i + reach, points_.size() - 1); ++j)
            if (j != i) around.push_back(points_[j].second);
        std::sort(around.begin(), around.end());
        const auto own = static_cast<double>(points_[i].second);
        const double median = around.empty() ? own : static_cast<double>(around[around.size() / 2]);
        if (own <= limit * median && median <= limit * own) kept.push_back(points_[i]);
    }
    return Curve(std::move(kept));
}

LinkTable::LinkTable(const Measurements& measured) : borrowed_(!measured.links_of.empty()) {
    std::map<Key, std::vector<std::pair<std::int64_t, std::int64_t>>> parts;
    for (const auto& p : measured.collective)
        parts[{p.source, p.kind, p.dtype, p.gpus, p.gpus_per_node}].emplace_back(p.message_bytes, p.latency_ns);
    for (auto& [key, points] : parts) {
        Curve curve(std::move(points));
        curves_.emplace_back(key, key.source == LinkSource::nodes ? curve.without_outliers() : std::move(curve));
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> inside, across;
    for (const auto& p : measured.point_to_point)
        (p.gpus_per_node == 1 ? across : inside).emplace_back(p.message_bytes, p.latency_ns);
    inside_ = Curve(std::move(inside)).without_outliers();
    across_ = Curve(std::move(across)).without_outliers();
}

const Curve* LinkTable::find(const Key& key) const {
    const auto found = std::lower_bound(curves_.begin(), curves_.end(), key,
                                        [](const auto& curve, const Key& k) { return curve.first < k; });
    return found == curves_.end() || found->first != key ? nullptr : &found->second;
}

namespace {

Region region_of(Basis basis) {
    switch (basis) {
        case Basis::exact:
            return Region::exact;
        case Basis::interpolated:
            return Region::on_grid;
        case Basis::extrapolated:
            return Region::beyond;
        case Basis::modelled:
            break;
    }
    return Region::modelled;
}

// What a table measured in one format says about others: the bytes move alike.
Dtype measured_dtype(Dtype dtype) { return size_of(dtype) == 1 ? Dtype::int8 : Dtype::fp16; }

double steps_of(CollectiveKind kind) { return kind == CollectiveKind::all_reduce ? 2 : 1; }

// Ring over `gpus` at a share of the link's speed. Constants: those with the least 90th percentile of errors over the
// 16-bit sweeps of A100, H100 and H200.
double ring_ns(const DeviceFacts& device, CollectiveKind kind, double gpus, double bytes) {
    const double efficiency = kind == CollectiveKind::all_reduce ? 0.75 : 0.6;
    const double steps_us = steps_of(kind) * (gpus - 1);
    constexpr double fixed_us = 6;
    return 1e3 *
           (fixed_us + steps_us + steps_of(kind) * bytes * (gpus - 1) / gpus / (device.link_bytes_per_us * efficiency));
}

}  // namespace

/// Inside a node of eight: the sweep of that format; the dense sweep of large all-reduces where it reaches further.
Answer LinkTable::from_sweep(const DeviceFacts& device, const Collective& query) const {
    const Curve* sweep = find({LinkSource::sweep, query.kind, measured_dtype(query.dtype), query.gpus, 8});
    const Curve* large = find({LinkSource::large, query.kind, Dtype::fp32, query.gpus, 8});
    const auto bytes = query.message.count;
    const bool in_large = large && bytes >= large->smallest() && bytes <= large->largest();
    const bool prefer_large = in_large && (query.dtype == Dtype::fp32 || !sweep || bytes > sweep->largest());
    const Curve* curve = prefer_large || !sweep ? large : sweep;
    if (!curve) return {};
    const auto reading = curve->at(bytes);
    return {reading.ns, reading.basis,
            error_percent(Subject::collective, device.family, region_of(reading.basis), false)};
}

Answer LinkTable::inside_node(const DeviceFacts& device, const Collective& query) const {
    if (query.gpus_per_node < 8)
        if (const auto* curve = find({LinkSource::nodes, query.kind, Dtype::fp16, query.gpus, query.gpus_per_node})) {
            const auto reading = curve->at(query.message.count);
            return {reading.ns, reading.basis,
                    error_percent(Subject::collective_nodes, device.family, region_of(reading.basis), false)};
        }
    if (const auto measured = from_sweep(device, query); measured.ns > 0) return measured;
    auto fewer = query;
    while (fewer.gpus > 1 && !(from_sweep(device, fewer).ns > 0)) --fewer.gpus;
    auto more = query;
    while (more.gpus <= 8 && !(from_sweep(device, more).ns > 0)) ++more.gpus;
    const auto low = from_sweep(device, fewer);
    const auto high = from_sweep(device, more);
    if (low.ns > 0 && high.ns > 0) {
        const double t = std::log(static_cast<double>(query.gpus) / static_cast<double>(fewer.gpus)) /
                         std::log(static_cast<double>(more.gpus) / static_cast<double>(fewer.gpus));
        const auto basis = at_best(Basis::interpolated, std::max(low.basis, high.basis));
        return {std::exp(std::log(low.ns) * (1 - t) + std::log(high.ns) * t), basis,
                error_percent(Subject::collective, device.family, Region::like, false)};
    }
    // More GPUs than the tables: the ring of the larger number, scaled by what the ring says of the measured one.
    const auto bytes = static_cast<double>(query.message.count);
    double ns = ring_ns(device, query.kind, static_cast<double>(query.gpus), bytes);
    if (low.ns > 0) ns *= low.ns / ring_ns(device, query.kind, static_cast<double>(fewer.gpus), bytes);
    return {ns, Basis::modelled, error_percent(Subject::collective, device.family, Region::modelled, false)};
}

/// Hierarchical: the collective inside each node, and a ring of nodes over the network that all GPUs of a node share.
Answer LinkTable::across_nodes(const DeviceFacts& device, const Collective& query) const {
    if (query.network.bytes_per_second == 0)
        if (const auto* curve = find({LinkSource::nodes, query.kind, Dtype::fp16, query.gpus, query.gpus_per_node})) {
            const auto reading = curve->at(query.message.count);
            return {reading.ns, reading.basis,
                    error_percent(Subject::collective_nodes, device.family, region_of(reading.basis), false)};
        }
    const auto nodes = (query.gpus + query.gpus_per_node - 1) / query.gpus_per_node;
    const auto n = static_cast<double>(nodes);
    auto local = query;
    local.gpus = query.gpus_per_node;
    const auto inside = [&](CollectiveKind kind, Bytes message) {
        local.kind = kind;
        local.message = message;
        return local.gpus > 1 ? inside_node(device, local).ns : 0.;
    };
    double ns = 0;
    double crossing = static_cast<double>(query.message.count) * (n - 1) / n * steps_of(query.kind);
    switch (query.kind) {
        case CollectiveKind::all_reduce:
            ns = inside(CollectiveKind::reduce_scatter, query.message) +
                 inside(CollectiveKind::all_gather, query.message);
            break;
        case CollectiveKind::all_to_all:
            ns = inside(query.kind, Bytes{std::max<std::int64_t>(1, query.message.count / nodes)});
            crossing *= static_cast<double>(query.gpus_per_node);
            break;
        case CollectiveKind::all_gather:
        case CollectiveKind::reduce_scatter:
            ns = inside(query.kind, query.message);
            break;
    }
    const PointToPoint tiny{.gpus_per_node = 1, .message = Bytes{1}, .network = query.network};
    constexpr std::int64_t much = std::int64_t{1} << 26;
    const PointToPoint huge{.gpus_per_node = 1, .message = Bytes{much}, .network = query.network};
    ns += steps_of(query.kind) * (n - 1) * transfer(device, tiny).ns +
          crossing / static_cast<double>(much) * transfer(device, huge).ns;
    return {ns, Basis::modelled, error_percent(Subject::collective_nodes, device.family, Region::modelled, false)};
}

Answer LinkTable::cost(const DeviceFacts& device, const Collective& query) const {
    return query.gpus <= query.gpus_per_node ? inside_node(device, query) : across_nodes(device, query);
}

Answer LinkTable::transfer(const DeviceFacts& device, const PointToPoint& query) const {
    const auto& curve = query.gpus_per_node == 1 ? across_ : inside_;
    const auto bytes = static_cast<double>(query.message.count);
    const bool other_network = query.gpus_per_node == 1 && query.network.bytes_per_second > 0;
    if (other_network || curve.empty()) {
        // The measured start-up time (of H100's tables where the device has none) plus the bytes at the link's speed.
        constexpr double startup_across_ns = 17e3;
        constexpr double startup_inside_ns = 5e3;
        constexpr double network_bytes_per_ns = 50;  // 400 Gb/s
        const double startup = !curve.empty()             ? curve.at(1).ns
                               : query.gpus_per_node == 1 ? startup_across_ns
                                                          : startup_inside_ns;
        const double speed = other_network              ? static_cast<double>(query.network.bytes_per_second) * 1e-9
                             : query.gpus_per_node == 1 ? network_bytes_per_ns
                                                        : device.link_bytes_per_us * 0.67e-3;
        return {startup + bytes / speed, Basis::modelled,
                error_percent(Subject::point_to_point, device.family, Region::modelled, false)};
    }
    const auto reading = curve.at(query.message.count);
    const auto basis = borrowed_ ? at_best(Basis::extrapolated, reading.basis) : reading.basis;
    return {reading.ns, basis,
            error_percent(Subject::point_to_point, device.family, borrowed_ ? Region::like : region_of(basis), false)};
}

Answer LinkTable::cost(const DeviceFacts& device, const PointToPoint& query) const { return transfer(device, query); }

}  // namespace pipeweaver::costdb
