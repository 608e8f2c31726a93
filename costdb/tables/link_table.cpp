#include "costdb/tables/link_table.hpp"

#include "costdb/tables/calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace pipeweaver::costdb {

namespace {

// How far off a line from an end is, for each factor of e that it reaches: some, and more where the end is still far
// from what the line tends to, all bandwidth above and all start-up below.
constexpr double doubt_per_e = 0.01;
constexpr double doubt_per_e_unsettled = 0.25;

// Of a link's nominal speed what messages reach at most: 160 of H800's 200 GB/s (DeepSeek-V3, arXiv 2412.19437, section
// 3.2.2), 360 of H100's 450 in large sweeps.
constexpr double share_of_link = 0.8;

}  // namespace

Curve::Curve(std::vector<LinkPoint> points) : points_(std::move(points)) {
    std::sort(points_.begin(), points_.end(), [](const LinkPoint& a, const LinkPoint& b) { return a.bytes < b.bytes; });
    for (const auto& p : points_)
        knots_.push_back({std::log(static_cast<double>(p.bytes)), std::log(static_cast<double>(p.ns)), 0});
    for (std::size_t i = 1; i + 1 < knots_.size(); ++i) {
        const auto& [x0, y0, low] = knots_[i - 1];
        const auto& [x1, y1, high] = knots_[i + 1];
        knots_[i].miss = std::abs(y0 + (knots_[i].log_bytes - x0) / (x1 - x0) * (y1 - y0) - knots_[i].log_ns);
    }
    if (knots_.size() > 2) {
        knots_.front().miss = knots_[1].miss;
        knots_.back().miss = knots_[knots_.size() - 2].miss;
    }
    if (points_.empty()) return;
    constexpr std::int64_t reach = 16;
    first_ = fit(smallest(), reach * smallest());
    last_ = fit(largest() / reach, largest());
}

/// The line with the least squares of relative errors over the points of these sizes; neither part is below 0.
Curve::Affine Curve::fit(std::int64_t from, std::int64_t to) const {
    double xx = 0, xz = 0, zz = 0, x_sum = 0, z_sum = 0;
    for (const auto& p : points_) {
        if (p.bytes < from || p.bytes > to) continue;
        const double x = 1 / static_cast<double>(p.ns), z = static_cast<double>(p.bytes) * x;
        xx += x * x;
        xz += x * z;
        zz += z * z;
        x_sum += x;
        z_sum += z;
    }
    const double determinant = xx * zz - xz * xz;
    const Affine line{(x_sum * zz - z_sum * xz) / determinant, (z_sum * xx - x_sum * xz) / determinant};
    const bool is_one_point = !(determinant > 1e-9 * xx * zz);
    if (is_one_point || line.startup < 0) return {0, z_sum / zz};
    if (line.per_byte < 0) return {x_sum / xx, 0};
    return line;
}

Curve::Reading Curve::beyond(std::size_t end, const Affine& line, std::int64_t bytes) const {
    const auto& p = points_[end];
    const double times = line.at(bytes) / line.at(p.bytes);
    const double away = std::abs(std::log(static_cast<double>(bytes)) - knots_[end].log_bytes);
    const double startup_share = line.startup / line.at(p.bytes);
    const double unsettled = bytes > p.bytes ? startup_share : 1 - startup_share;
    return {static_cast<double>(p.ns) * times, Basis::extrapolated,
            knots_[end].miss + away * (doubt_per_e + doubt_per_e_unsettled * unsettled)};
}

Curve::Reading Curve::at(std::int64_t bytes) const {
    const auto above = std::lower_bound(points_.begin(), points_.end(), bytes,
                                        [](const LinkPoint& p, std::int64_t size) { return p.bytes < size; });
    if (above == points_.end()) return beyond(points_.size() - 1, last_, bytes);
    if (above->bytes == bytes) return {static_cast<double>(above->ns), Basis::exact, 0, above->spread_permille};
    if (above == points_.begin()) return beyond(0, first_, bytes);
    const auto& high = knots_[static_cast<std::size_t>(above - points_.begin())];
    const auto& low = knots_[static_cast<std::size_t>(above - points_.begin()) - 1];
    const double t = (std::log(static_cast<double>(bytes)) - low.log_bytes) / (high.log_bytes - low.log_bytes);
    return {std::exp(low.log_ns + t * (high.log_ns - low.log_ns)), Basis::interpolated, (low.miss + high.miss) / 2};
}

Curve Curve::without_outliers() const {
    constexpr std::size_t reach = 4;
    constexpr double limit = 1.5;
    std::vector<LinkPoint> kept;
    std::vector<std::int64_t> around;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        around.clear();
        for (std::size_t j = i - std::min(i, reach); j <= std::min(i + reach, points_.size() - 1); ++j)
            if (j != i) around.push_back(points_[j].ns);
        std::sort(around.begin(), around.end());
        const auto own = static_cast<double>(points_[i].ns);
        const double median = around.empty() ? own : static_cast<double>(around[around.size() / 2]);
        if (own <= limit * median && median <= limit * own) kept.push_back(points_[i]);
    }
    return Curve(std::move(kept));
}

LinkTable::LinkTable(const Measurements& measured) : borrowed_(!measured.links_of.empty()) {
    const auto measured_on = [&](const std::string& lender) {
        return facts_of(lender.empty() ? measured.device : lender);
    };
    of_collectives_ = measured_on(measured.collectives_of).link_bytes_per_us;
    const DeviceFacts of_transfers = measured_on(measured.links_of);
    of_transfers_ = of_transfers.link_bytes_per_us;
    of_network_ = of_transfers.network_bytes_per_us;
    std::map<Key, std::vector<LinkPoint>> parts;
    for (const auto& p : measured.collective)
        parts[{p.source, p.kind, p.dtype, p.gpus, p.gpus_per_node}].push_back(
            {p.message_bytes, p.latency_ns, p.spread_permille});
    for (auto& [key, points] : parts) {
        Curve curve(std::move(points));
        curves_.emplace_back(key, key.source == LinkSource::nodes ? curve.without_outliers() : std::move(curve));
    }
    std::vector<LinkPoint> inside, across;
    for (const auto& p : measured.point_to_point)
        (p.gpus_per_node == 1 ? across : inside).push_back({p.message_bytes, p.latency_ns, p.spread_permille});
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

Answer answer_of(const Curve::Reading& reading, Subject subject, const DeviceFacts& device) {
    const auto error = reading.basis == Basis::exact
                           ? exact_error_percent(reading.spread_permille)
                           : error_percent(subject, device.family, region_of(reading.basis), false, reading.doubt);
    return {reading.ns, reading.basis, error};
}

// What a table measured in one format says about others: the bytes move alike.
Dtype dtype_as_wide(Dtype dtype) { return size_of(dtype) == 1 ? Dtype::int8 : Dtype::fp16; }

double steps_of(CollectiveKind kind) { return kind == CollectiveKind::all_reduce ? 2 : 1; }

// A collective as a ring: start-up, a step for each other GPU, and the bytes at a share of the link's speed.
struct Ring {
    CollectiveKind kind;
    double efficiency, step_us, fixed_us;
};

// Those with the least 90th percentile of errors over the 16-bit sweeps of A100, H100 and H200.
constexpr std::array<Ring, 4> usual_rings{{{CollectiveKind::all_reduce, 0.75, 2, 6},
                                           {CollectiveKind::all_gather, 0.6, 1, 6},
                                           {CollectiveKind::reduce_scatter, 0.6, 1, 6},
                                           {CollectiveKind::all_to_all, 0.6, 1, 6}}};

// Rings: the same over the sweeps of B200, B300, GB200 and GB300. All-to-alls: SimuMax's system file of B200
// (MooreThreads/SimuMax, Apache-2.0). In sweeps eight GPUs start one hardly later than two do, but measured steps with
// 64 of them are nearer to the start-ups of that file.
constexpr std::array<Ring, 4> blackwell_rings{{{CollectiveKind::all_reduce, 0.6, 3, 8},
                                               {CollectiveKind::all_gather, 0.55, 1.5, 8},
                                               {CollectiveKind::reduce_scatter, 0.5, 1.5, 8},
                                               {CollectiveKind::all_to_all, 0.5968, 7.3039, 0}}};

double fixed_us_of(const Ring& ring, bool of_blackwell, std::int64_t gpus) {
    if (!of_blackwell || ring.kind != CollectiveKind::all_to_all) return ring.fixed_us;
    return gpus == 2 ? 51.0578 : gpus == 4 ? 19.2102 : 0;
}

// `link` in bytes a microsecond.
double ring_ns(const DeviceFacts& device, double link, CollectiveKind kind, std::int64_t gpus, double bytes) {
    const bool of_blackwell = device.family == Family::blackwell;
    const auto& rings = of_blackwell ? blackwell_rings : usual_rings;
    const Ring& ring = *std::find_if(rings.begin(), rings.end(), [&](const Ring& one) { return one.kind == kind; });
    const auto n = static_cast<double>(gpus);
    return 1e3 * (fixed_us_of(ring, of_blackwell, gpus) + (n - 1) * ring.step_us +
                  steps_of(kind) * bytes * (n - 1) / n / (link * ring.efficiency));
}

}  // namespace

/// Inside a node of eight: the sweep of that format; the dense sweep of large all-reduces where it reaches further.
Answer LinkTable::from_sweep(const DeviceFacts& device, const Collective& query) const {
    const Curve* sweep = find({LinkSource::sweep, query.kind, dtype_as_wide(query.dtype), query.gpus, 8});
    const Curve* large = find({LinkSource::large, query.kind, Dtype::fp32, query.gpus, 8});
    const auto bytes = query.message.count;
    const bool in_large = large && bytes >= large->smallest() && bytes <= large->largest();
    const bool prefer_large = in_large && (query.dtype == Dtype::fp32 || !sweep || bytes > sweep->largest());
    const Curve* curve = prefer_large || !sweep ? large : sweep;
    if (!curve) return {};
    auto reading = curve->at(bytes);
    if (reading.basis == Basis::exact && query.dtype == Dtype::fp32 && curve == sweep) {
        constexpr double doubt_of_format = 0.1;  // as far apart as the two sweeps are where both were measured
        reading.basis = Basis::interpolated;
        reading.doubt = doubt_of_format;
    }
    if (curve == large && bytes < large->smallest()) {  // far below: as the ring's time falls
        const auto ring = [&](std::int64_t size) {
            return ring_ns(device, of_collectives_, query.kind, query.gpus, static_cast<double>(size));
        };
        const double ns = reading.ns * ring(bytes) / ring(large->smallest());
        return {ns, Basis::modelled, error_percent(Subject::collective, device.family, Region::modelled, false)};
    }
    return answer_of(reading, Subject::collective, device);
}

Answer LinkTable::over_measured_link(const DeviceFacts& device, const Collective& query) const {
    if (query.gpus_per_node < 8)
        if (const auto* curve = find({LinkSource::nodes, query.kind, Dtype::fp16, query.gpus, query.gpus_per_node}))
            return answer_of(curve->at(query.message.count), Subject::collective_nodes, device);
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
    double ns = ring_ns(device, of_collectives_, query.kind, query.gpus, bytes);
    if (low.ns > 0) ns *= low.ns / ring_ns(device, of_collectives_, query.kind, fewer.gpus, bytes);
    return {ns, Basis::modelled, error_percent(Subject::collective, device.family, Region::modelled, false)};
}

namespace {

/// Microseconds of a collective among `nodes` nodes for the steps after the first: a ring goes around, a double binary
/// tree (all-reduces only) up and down. Step times across a network: NCCL, src/graph/tuning.cc, protocol LL128.
double ring_steps_us(CollectiveKind kind, double nodes) { return 4 * steps_of(kind) * (nodes - 2); }
double tree_steps_us(double nodes) { return 8.5 * 2 * (std::ceil(std::log2(nodes)) - 1); }

// How collectives use a network whose speed is given.
struct AcrossNodes {
    double share;    // of its speed that they reach
    bool pipelined;  // pieces cross the network while others move inside the nodes
};

// Ampere: what all-reduces of two GPUs of two nodes reach of a transfer, and phases one after the other, which runs of
// 2021-23 are nearer to (vTrain's: 7.1 % on average, 7.5 % with pieces). After it: all-reduces of two nodes of eight
// H100s reach 362 of 400 GB/s, so that what moves inside the nodes at 436 is hidden (Hugging Face, The Ultra-Scale
// Playbook); all-to-alls are taken to reach as much less of it as inside a node, 0.6 of a link to 0.75.
AcrossNodes across_nodes_of(Family family, CollectiveKind kind) {
    if (family == Family::ampere) return {0.76, false};
    return {kind == CollectiveKind::all_to_all ? 0.72 : 0.9, true};
}

}  // namespace

/// Hierarchical: the collective inside each node (all-reduce: reduce-scatter and all-gather), and rings or trees over
/// the nodes, one for each GPU of a node, that share the node's network.
Answer LinkTable::across_nodes(const DeviceFacts& device, const Collective& query) const {
    if (query.network.bytes_per_second == 0)
        if (const auto* curve = find({LinkSource::nodes, query.kind, Dtype::fp16, query.gpus, query.gpus_per_node}))
            return answer_of(curve->at(query.message.count), Subject::collective_nodes, device);
    const auto nodes = (query.gpus + query.gpus_per_node - 1) / query.gpus_per_node;
    const auto n = static_cast<double>(nodes);
    const auto bytes = static_cast<double>(query.message.count);
    auto local = query;
    local.gpus = query.gpus_per_node;
    if (query.kind == CollectiveKind::all_to_all)
        local.message = Bytes{std::max<std::int64_t>(1, query.message.count / nodes)};
    const double inside = local.gpus > 1 ? inside_node(device, local).ns : 0;
    const PointToPoint tiny{.gpus_per_node = 1, .message = Bytes{1}, .network = query.network};
    constexpr std::int64_t much = std::int64_t{1} << 26;
    const PointToPoint huge{.gpus_per_node = 1, .message = Bytes{much}, .network = query.network};
    const double start = transfer(device, tiny).ns;
    const auto [share_of_network, pipelined] = across_nodes_of(device.family, query.kind);
    // Where the network is that of the measured machines, a node with more GPUs has more of it than the measured single
    // GPU, by how much is not stated.
    const double reached = query.network.bytes_per_second > 0 ? share_of_network : 1;
    const double byte_ns = (transfer(device, huge).ns - start) / static_cast<double>(much) / reached;
    // All that a node's GPUs hold leaves it but for the node's own share.
    const double share = query.kind == CollectiveKind::all_to_all ? static_cast<double>(query.gpus_per_node) : 1;
    double across = 1e3 * ring_steps_us(query.kind, n) + steps_of(query.kind) * (n - 1) / n * share * bytes * byte_ns;
    if (query.kind == CollectiveKind::all_reduce)
        across = std::min(across, 1e3 * tree_steps_us(n) + 2 * bytes * byte_ns);
    const double ns = steps_of(query.kind) * start + (pipelined ? std::max(inside, across) : inside + across);
    return {ns, Basis::modelled, error_percent(Subject::collective_nodes, device.family, Region::modelled, false)};
}

namespace {

// Bytes a microsecond.
double speed_or(Bandwidth given, double otherwise) {
    return given.bytes_per_second > 0 ? static_cast<double>(given.bytes_per_second) * 1e-6 : otherwise;
}

// What the bytes that leave each GPU take longer over the query's link than over the one that was measured. The rest of
// a measured time, start-up and copies, stays.
void move_over(Answer& answer, double wire_bytes, double measured_link, double link) {
    if (link <= 0 || measured_link <= 0 || link == measured_link) return;
    constexpr double least = 0.1;  // of the measured time
    const double more_us = wire_bytes / share_of_link * (1 / link - 1 / measured_link);
    answer.ns = std::max(answer.ns + 1e3 * more_us, least * answer.ns);
    answer.basis = at_best(Basis::extrapolated, answer.basis);
}

double wire_bytes_of(const Collective& query) {
    const auto gpus = static_cast<double>(query.gpus);
    return steps_of(query.kind) * (gpus - 1) / gpus * static_cast<double>(query.message.count);
}

}  // namespace

Answer LinkTable::inside_node(const DeviceFacts& device, const Collective& query) const {
    Answer answer = over_measured_link(device, query);
    const double own = speed_or(query.node_link, device.link_bytes_per_us);
    if (query.gpus > 1) move_over(answer, wire_bytes_of(query), of_collectives_, own);
    return answer;
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
                                                        : speed_or(query.node_link, device.link_bytes_per_us) * 0.67e-3;
        return {startup + bytes / speed, Basis::modelled,
                error_percent(Subject::point_to_point, device.family, Region::modelled, false)};
    }
    const auto reading = curve.at(query.message.count);
    if (!borrowed_) return answer_of(reading, Subject::point_to_point, device);
    return {reading.ns, at_best(Basis::extrapolated, reading.basis),
            error_percent(Subject::point_to_point, device.family, Region::like, false)};
}

Answer LinkTable::cost(const DeviceFacts& device, const PointToPoint& query) const {
    const bool across = query.gpus_per_node == 1;
    if ((across ? across_ : inside_).empty()) return transfer(device, query);
    Answer answer = transfer(device, {query.gpus_per_node, query.message, {}, {}});
    const double link = across ? speed_or(query.network, device.network_bytes_per_us)
                               : speed_or(query.node_link, device.link_bytes_per_us);
    move_over(answer, static_cast<double>(query.message.count), across ? of_network_ : of_transfers_, link);
    return answer;
}

}  // namespace pipeweaver::costdb
