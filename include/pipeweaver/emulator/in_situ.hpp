// How kernels in a training step compare to kernels alone: the numbers that were fitted to published training runs, all
// there are, in one table.
//
// In situ      Kernels in a step run slower than alone (clocks, caches, neighbours). What hides traffic is the recipe's
//              to say (recipe.hpp); where it is products in pieces, how much stays exposed is fitted, too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeweaver::costdb {
class CostDatabase;
}

namespace pipeweaver::emulator {

/// What was fitted for one device. A factor of 1 and a time of 0 are not fitted.
struct FittedConstants {
    double compute = 1;             ///< time in a step / time alone, of GEMMs, attention, memory-bound kernels
    double collectives = 1;         ///< time in a step / time alone, of collectives
    double inside_gemms = 1;        ///< of tensor-parallel traffic that is hidden inside GEMMs, what stays exposed
    double grouped_gemm_share = 1;  ///< of the peak that the experts' GEMMs reach
    double expert_layer_us = 0;     ///< of routing, for a layer with experts, a microbatch, forward and backward
    std::string_view rows;          ///< that they were fitted on, and the mean error before and after
};

/// What was fitted for `device`; none: no run of it was at hand.
[[nodiscard]] std::optional<FittedConstants> fitted_constants(std::string_view device);

/// What times of operators alone are multiplied with on a device.
struct InSituFactors {
    double compute = 1;       ///< GEMM, attention and memory-bound kernels
    double collectives = 1;   ///< what GPUs exchange
    double inside_gemms = 1;  ///< tensor-parallel traffic, under TensorOverlap::inside_gemms, besides
    std::string source;
};
[[nodiscard]] InSituFactors in_situ_factors(std::string_view device);

/// The factors that the cost database holds (`costdb calibrate --steps`), else those of the device.
[[nodiscard]] InSituFactors in_situ_factors(const costdb::CostDatabase& costs, std::string_view device);

}  // namespace pipeweaver::emulator
