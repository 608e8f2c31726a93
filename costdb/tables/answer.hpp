// An answer before it is rounded to nanoseconds.
#pragma once

#include "costdb/tables/calibration.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/operators.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::costdb {

struct Answer {
    double ns = 0;  ///< exact hits hold the table's whole number
    Basis basis = Basis::modelled;
    double error_percent = 0;
};

/// What an exact hit needs of a point.
struct Timed {
    std::int64_t latency_ns = 0, spread_permille = 0;
};

/// `basis`, but not better than `limit`.
constexpr Basis at_best(Basis limit, Basis basis) { return std::max(limit, basis); }

/// In whole nanoseconds. Throws Error{input} for more than 100 days.
inline Cost rounded(const Answer& answer) {
    constexpr double longest_ns = 100. * 86'400e9;
    if (!(answer.ns <= longest_ns)) fail(ErrorKind::input, "sizes: the operator would last above 100 days");
    const auto ns = std::max<std::int64_t>(1, std::llround(answer.ns));
    return {Duration{ns}, answer.basis, answer.error_percent};
}

/// The point's own time; its error is its spread, and no less than what repetition cannot tell (calibration.hpp).
inline Answer exact_answer(const Timed& point) {
    return {static_cast<double>(point.latency_ns), Basis::exact, exact_error_percent(point.spread_permille)};
}

}  // namespace pipeweaver::costdb
