// GEMM: look-up by ratio to a base time; the method is in database.hpp.
#pragma once

#include "costdb/tables/answer.hpp"
#include "costdb/tables/device_facts.hpp"
#include "costdb/tables/sparse_grid.hpp"
#include "pipeweaver/costdb/measurements.hpp"

#include <span>
#include <vector>

namespace pipeweaver::costdb {

class GemmTable {
public:
    GemmTable() = default;
    GemmTable(const DeviceFacts& device, std::span<const GemmPoint> points);

    Answer cost(const DeviceFacts& device, const Gemm& query) const;

private:
    struct Grid {
        Dtype dtype = Dtype::bf16;
        Pass pass = Pass::forward;
        SparseGrid<3> ratios;         // over m, n, k
        std::vector<Timed> measured;  // in the order of the points
    };

    const Grid* find(Dtype dtype, Pass pass) const;
    Answer forward(const DeviceFacts& device, const Gemm& query) const;
    static Answer from_grid(const Grid& grid, const DeviceFacts& device, const Gemm& query);

    std::vector<Grid> grids_;
};

}  // namespace pipeweaver::costdb
