// Attention: look-up by ratio to a base time; the method is in database.hpp.
#pragma once

#include "costdb/tables/answer.hpp"
#include "costdb/tables/device_facts.hpp"
#include "costdb/tables/sparse_grid.hpp"
#include "pipeweaver/costdb/measurements.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::costdb {

class AttentionTable {
public:
    AttentionTable() = default;
    AttentionTable(const DeviceFacts& device, std::span<const AttentionPoint> points);

    Answer cost(const DeviceFacts& device, const Attention& query) const;

private:
    struct Grid {
        Pass pass = Pass::forward;
        bool causal = true;
        /// Of head sizes that were never measured with several heads and keys for each: by query heads, the most key
        /// heads that were.
        std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> few_keys;
        SparseGrid<5> ratios;         // over batch, seq_len, q_heads, key heads (see key_of), head_dim
        std::vector<Timed> measured;  // in the order of the points
    };

    const Grid* find(Pass pass, bool causal) const;
    Answer forward(const DeviceFacts& device, const Attention& query) const;
    static Answer of_any_size(const Grid& grid, const DeviceFacts& device, const Attention& query);
    static Answer of_size(const Grid& grid, const DeviceFacts& device, const Attention& query);
    static Answer wider_encoder(const Grid& encoder, const Grid& causal, const DeviceFacts& device,
                                const Attention& query);

    std::vector<Grid> grids_;
};

}  // namespace pipeweaver::costdb
