// Leave-out: build the database without some of its points, ask for them, and compare.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/costdb/database.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace pipeweaver::costdb {

[[nodiscard]] inline Gemm query_of(const GemmPoint& p) {
    return {.dtype = p.dtype, .m = p.m, .n = p.n, .k = p.k, .pass = p.pass};
}
[[nodiscard]] inline Attention query_of(const AttentionPoint& p) {
    return {.dtype = p.dtype,
            .batch = p.batch,
            .seq_len = p.seq_len,
            .q_heads = p.q_heads,
            .kv_heads = p.kv_heads,
            .head_dim = p.head_dim,
            .causal = p.causal,
            .pass = p.pass};
}
[[nodiscard]] inline Collective query_of(const CollectivePoint& p) {
    return {p.kind, p.dtype, p.gpus, p.gpus_per_node, Bytes{p.message_bytes}};
}
[[nodiscard]] inline PointToPoint query_of(const PointToPointPoint& p) {
    return {p.gpus_per_node, Bytes{p.message_bytes}};
}
[[nodiscard]] inline MixtureOfExperts query_of(const MoePoint& p) {
    return {p.dtype, p.tokens, p.hidden, p.ffn, p.top_k, p.experts, p.moe_tp, p.moe_ep, p.routing};
}

[[nodiscard]] inline DeltaNet query_of(const LinearPoint& p) {
    return {p.kernel, p.batch, p.seq_len, p.key_heads, p.value_heads, p.key_dim, p.value_dim};
}

/// What training uses; the size classes that printed errors differ by.
[[nodiscard]] inline bool is_big(const GemmPoint& p) { return p.m >= 512 && p.m * p.n * p.k >= std::int64_t{1} << 33; }
[[nodiscard]] inline bool is_big(const AttentionPoint& p) { return p.latency_ns > 200'000; }

/// A point that was left out, and what the rest says of it.
template <class Point>
struct Asked {
    Point point;
    Cost answer;
    double error = 0;  ///< |answer / truth - 1|, percent

    bool within() const { return error <= answer.error_percent; }
};

/// What `database` says of `points`.
template <class Point>
std::vector<Asked<Point>> asked(const CostDatabase& database, const std::vector<Point>& points) {
    std::vector<Asked<Point>> all;
    for (const auto& point : points) {
        const auto answer = database.cost(query_of(point));
        const double error =
            100 * std::abs(static_cast<double>(answer.duration.count()) / static_cast<double>(point.latency_ns) - 1);
        all.push_back({point, answer, error});
    }
    return all;
}

/// Asks for the points for which `leaves_out(point, index)` holds, of a database that has all but them.
template <class Point, class F>
std::vector<Asked<Point>> leave_out(const CostDatabase& database, std::vector<Point> Measurements::*points,
                                    const F& leaves_out) {
    auto rest = database.measurements();
    std::vector<Point> kept, out;
    for (std::size_t i = 0; i < (rest.*points).size(); ++i)
        (leaves_out((rest.*points)[i], i) ? out : kept).push_back((rest.*points)[i]);
    rest.*points = std::move(kept);
    return asked(CostDatabase::from(std::move(rest)), out);
}

/// One fold of `folds`, the same each time: by the point's number.
[[nodiscard]] inline std::size_t fold_of(std::uint64_t seed, std::size_t index, std::size_t folds) {
    return Random(seed, index).below(folds);
}

/// The errors of those that `wanted` holds for, sorted.
template <class Point, class F>
std::vector<double> errors(const std::vector<Asked<Point>>& asked, F wanted) {
    std::vector<double> result;
    for (const auto& a : asked)
        if (wanted(a)) result.push_back(a.error);
    std::sort(result.begin(), result.end());
    return result;
}

/// The value that `share` of the sorted values do not exceed. Pre: not empty.
[[nodiscard]] inline double quantile(const std::vector<double>& sorted, double share) {
    const auto last = static_cast<double>(sorted.size() - 1);
    return sorted[static_cast<std::size_t>(share * last)];
}

}  // namespace pipeweaver::costdb
