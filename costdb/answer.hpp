// An answer before it is rounded to nanoseconds.
#pragma once

#include "pipeweaver/costdb/database.hpp"

#include <algorithm>

namespace pipeweaver::costdb {

struct Answer {
    double ns = 0;  ///< exact hits hold the table's whole number
    Basis basis = Basis::modelled;
    double error_percent = 0;
};

/// `basis`, but not better than `limit`.
constexpr Basis at_best(Basis limit, Basis basis) { return std::max(limit, basis); }

}  // namespace pipeweaver::costdb
