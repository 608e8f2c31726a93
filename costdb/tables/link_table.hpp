// Collectives and point-to-point transfers: curves over the message size, and algorithms beyond them.
#pragma once

#include "costdb/tables/answer.hpp"
#include "costdb/tables/device_facts.hpp"
#include "pipeweaver/costdb/measurements.hpp"

#include <span>
#include <utility>
#include <vector>

namespace pipeweaver::costdb {

/// A message that was measured.
struct LinkPoint {
    std::int64_t bytes = 0, ns = 0, spread_permille = 0;
};

/// Time over message size: linear in logarithms between points; beyond them as a start-up time and a bandwidth say that
/// fit the nearest points, within a factor of 16 of the end, from the end's own time on.
class Curve {
public:
    Curve() = default;
    explicit Curve(std::vector<LinkPoint> points);  ///< sorted here

    bool empty() const { return points_.empty(); }
    std::int64_t smallest() const { return points_.front().bytes; }
    std::int64_t largest() const { return points_.back().bytes; }

    struct Reading {
        double ns = 0;
        Basis basis = Basis::exact;
        double doubt = 0;  ///< how far such readings are off, as a share: what their neighbours say of the ends
        std::int64_t spread_permille = 0;
    };
    Reading at(std::int64_t bytes) const;  ///< Pre: !empty()

    /// Without the points that are more than 1.5 times above or below the median of the eight around them.
    Curve without_outliers() const;

private:
    struct Knot {
        double log_bytes = 0, log_ns = 0, miss = 0;
    };
    /// startup + bytes / speed, in any unit of time.
    struct Affine {
        double startup = 0, per_byte = 0;
        double at(std::int64_t bytes) const { return startup + per_byte * static_cast<double>(bytes); }
    };
    Affine fit(std::int64_t from, std::int64_t to) const;
    Reading beyond(std::size_t end, const Affine& line, std::int64_t bytes) const;

    std::vector<LinkPoint> points_;
    std::vector<Knot> knots_;  // of the points
    Affine first_, last_;      // of the ends
};

class LinkTable {
public:
    LinkTable() = default;
    explicit LinkTable(const Measurements& measured);

    Answer cost(const DeviceFacts& device, const Collective& query) const;
    Answer cost(const DeviceFacts& device, const PointToPoint& query) const;

private:
    struct Key {
        LinkSource source = LinkSource::sweep;
        CollectiveKind kind = CollectiveKind::all_reduce;
        Dtype dtype = Dtype::fp16;
        std::int64_t gpus = 0, gpus_per_node = 8;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    const Curve* find(const Key& key) const;
    Answer inside_node(const DeviceFacts& device, const Collective& query) const;
    Answer over_measured_link(const DeviceFacts& device, const Collective& query) const;
    Answer from_sweep(const DeviceFacts& device, const Collective& query) const;
    Answer across_nodes(const DeviceFacts& device, const Collective& query) const;
    Answer transfer(const DeviceFacts& device, const PointToPoint& query) const;

    std::vector<std::pair<Key, Curve>> curves_;  // sorted by key
    Curve inside_, across_;                      // point to point
    bool borrowed_ = false;                      // the two are another device's
    // Speeds that they were measured at, bytes a microsecond and GPU: links inside a node of the collectives and of the
    // transfers, the network of these.
    double of_collectives_ = 0, of_transfers_ = 0, of_network_ = 0;
};

}  // namespace pipeweaver::costdb
