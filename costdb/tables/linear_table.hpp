// Forward kernels of gated delta nets.
#pragma once

#include "costdb/tables/answer.hpp"
#include "costdb/tables/sparse_grid.hpp"
#include "pipeweaver/costdb/measurements.hpp"
#include "pipeweaver/costdb/operators.hpp"

#include <span>
#include <vector>

namespace pipeweaver::costdb {

class LinearTable {
public:
    LinearTable() = default;
    LinearTable(const DeviceFacts& device, std::span<const LinearPoint> points);

    Answer cost(const DeviceFacts& device, const DeltaNet& query) const;

private:
    struct Grid {
        LinearKernel kernel{};
        std::int64_t key_dim = 0, value_dim = 0;
        SparseGrid<4> ratios;  // batch, positions, key heads, value heads
        std::vector<Timed> measured;
    };
    std::vector<Grid> grids_;
};

}  // namespace pipeweaver::costdb
