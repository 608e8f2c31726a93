// Memory-bound work: measured points by kind and pass over the bytes moved, and the model where there are none.
#pragma once

#include "costdb/tables/link_table.hpp"

#include <utility>
#include <vector>

namespace pipeweaver::costdb {

/// A point answers exactly; between points as links are read (Curve); beyond them, and for kinds without points, 0.8 of
/// the memory bandwidth.
class ElementwiseTable {
public:
    ElementwiseTable() = default;
    explicit ElementwiseTable(const std::vector<ElementwisePoint>& measured);

    Answer cost(const DeviceFacts& device, const Elementwise& query) const;

private:
    using Key = std::pair<ElementwiseKind, Pass>;
    std::vector<std::pair<Key, Curve>> curves_;  // sorted by key
};

}  // namespace pipeweaver::costdb
