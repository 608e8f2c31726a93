// The SQLite form of the measurements.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace pipeweaver::costdb {

/// Measurements of one table with their provenance.
struct SourcedMeasurements {
    std::string file, origin, licence, sha256;
    Measurements points;  // of points.device; of in_situ and pass_factors the first source's count
    std::int64_t transferred_permille = 0;
};

inline auto key_of(const GemmPoint& p) { return std::tuple(p.dtype, p.pass, p.m, p.n, p.k); }
inline auto key_of(const AttentionPoint& p) {
    return std::tuple(p.dtype, p.pass, p.causal, p.head_dim, p.kv_heads, p.q_heads, p.batch, p.seq_len);
}
inline auto key_of(const CollectivePoint& p) {
    return std::tuple(p.source, p.kind, p.dtype, p.gpus, p.gpus_per_node, p.message_bytes);
}
inline auto key_of(const PointToPointPoint& p) { return std::tuple(p.gpus_per_node, p.message_bytes); }
inline auto key_of(const MoePoint& p) {
    return std::tuple(p.dtype, p.routing, p.hidden, p.ffn, p.top_k, p.experts, p.moe_tp, p.moe_ep, p.tokens);
}
inline auto key_of(const ElementwisePoint& p) { return std::tuple(p.kind, p.pass, p.traffic_bytes); }
inline auto key_of(const LinearPoint& p) {
    return std::tuple(p.kernel, p.key_dim, p.value_dim, p.key_heads, p.value_heads, p.batch, p.seq_len);
}

/// The bytes of a database with these sources, in this order; one whose points have origins is taken apart by them.
/// Pre: no two points of a source with equal keys.
[[nodiscard]] std::string write_store(const std::vector<SourcedMeasurements>& sources);

/// The points by their origins, as sources. Pre: points.origins holds each point's origin.
[[nodiscard]] std::vector<SourcedMeasurements> by_origin(const Measurements& points);

/// Sources of which each point names its own origin, taken apart by those; the others as they are.
[[nodiscard]] std::vector<SourcedMeasurements> parts_of(const std::vector<SourcedMeasurements>& sources);

/// The points of `device` (canonical), of all its sources; of equal keys the first source's. Empty if the database
/// has none. `name` is for errors; `check` looks through all pages first. Throws Error{input} for what is no database
/// of ours, is damaged or newer.
[[nodiscard]] Measurements read_store(const std::string& name, std::string_view bytes, std::string_view device,
                                      bool check);

/// The same, unchecked, of what traffic between GPUs takes alone: of a device that lends another its links nothing else
/// is asked. Its origins are those of read_store().
[[nodiscard]] Measurements read_links(const std::string& name, std::string_view bytes, std::string_view device);

/// All sources with their points, in the order of the database. Throws as read_store() does.
[[nodiscard]] std::vector<SourcedMeasurements> read_sources(const std::string& name, std::string_view bytes);

/// Devices of the database, sorted.
[[nodiscard]] std::vector<std::string> devices_of_store(const std::string& name, std::string_view bytes);

}  // namespace pipeweaver::costdb
