// How kernels run in training steps, from a few steps that were measured.
//
// Model        step = compute_factor * compute + tp_factor * tensor-parallel communication + other. Relative least
//              squares with bounds (compute 0.5 to 3, tp 0 to 3). Two factors and no more: six of them fit a hundred
//              runs no better on runs left out, with values that jump.
// Units        seconds; what is emulated is without in-situ factors.
#pragma once

#include "pipeweaver/base/csv.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace pipeweaver::costdb {

struct MeasuredStep {
    double compute_s = 0;   ///< emulated time of GEMM, attention and memory-bound kernels, bubbles included
    double tp_s = 0;        ///< emulated tensor-parallel communication, none hidden
    double other_s = 0;     ///< what no factor changes
    double measured_s = 0;  ///< of the whole step
};

struct StepFactors {
    double compute = 1, tp_exposed = 1;
};

constexpr std::size_t fewest_steps = 3;

/// The factors of least squared relative error. Where no step has tensor-parallel communication, or its share is the
/// same in all, its factor is 1. Pre: at least one step, compute_s and measured_s above 0.
[[nodiscard]] StepFactors fit_factors(std::span<const MeasuredStep> steps);

/// |emulated / measured - 1| in percent.
[[nodiscard]] double error_percent(const MeasuredStep& step, const StepFactors& factors);

/// The error of each step by factors that were fitted to the others. Pre: at least two steps.
[[nodiscard]] std::vector<double> left_out_errors(std::span<const MeasuredStep> steps);

/// Rows of compute_s,tp_exposed_s,other_s,measured_s; the middle two may be 0. Throws Error{input} with file, line and
/// column, and for fewer than fewest_steps.
[[nodiscard]] std::vector<MeasuredStep> measured_steps(const CsvTable& table);

}  // namespace pipeweaver::costdb
