// The library's leave-out, and a usual part of it.
#pragma once

#include "pipeweaver/costdb/leave_out.hpp"

#include <cstddef>
#include <cstdint>

namespace pipeweaver::costdb::testing {

/// One of ten folds.
template <class Point>
auto one_of_ten(std::uint64_t seed) {
    return [seed](const Point&, std::size_t index) { return fold_of(seed, index, 10) == 0; };
}

}  // namespace pipeweaver::costdb::testing
