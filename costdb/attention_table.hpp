// Attention: look-up by ratio to a base time; the method is in database.hpp.
#pragma once

#include "costdb/answer.hpp"
#include "costdb/device_facts.hpp"
#include "costdb/sparse_grid.hpp"
#include "pipeweaver/costdb/measurements.hpp"

#include <span>
#include <vector>

namespace pipeweaver::costdb {

class AttentionTable {
public:
    AttentionTable() = default;
    AttentionTable(const DeviceFacts& device, std::span<const AttentionPoint> points);

    Answer cost(const DeviceFacts& device, const Attention& query) const;

private:
    /// What is not interpolated over.
    struct Kind {
        Pass pass = Pass::forward;
        bool causal = true;
        std::int64_t head_dim = 0;
        std::int64_t kv_heads = 0;  // 0: as many as query heads
        friend auto operator<=>(const Kind&, const Kind&) = default;
    };
    struct Grid {
        Kind kind;
        SparseGrid<3> ratios;  // over batch, seq_len, q_heads
        std::vector<std::int64_t> latency_ns;
    };

    static bool has_kv_heads(const Kind& kind, const Attention& query);
    const Grid* nearest_kv(Pass pass, bool causal, std::int64_t head_dim, const Attention& query) const;
    std::int64_t size_up(bool causal, std::int64_t head_dim) const;
    std::int64_t largest(bool causal) const;
    Answer forward(const DeviceFacts& device, const Attention& query) const;
    Answer from_size(const DeviceFacts& device, const Attention& query, std::int64_t measured_dim) const;

    std::vector<Grid> grids_;  // sorted by kind
};

}  // namespace pipeweaver::costdb
