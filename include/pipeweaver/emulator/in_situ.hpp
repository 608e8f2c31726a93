// How kernels in a training step compare to kernels alone: the numbers that were fitted to published training runs, all
// there are, in one table by device and precision.
//
// In situ      Kernels in a step run slower than alone (clocks, caches, neighbours). What hides traffic is the recipe's
//              to say (recipe.hpp); where it is products in pieces, how much stays exposed is fitted, too. What a
//              framework's kernels take beside those of the tuned one that a row was fitted on is its recipe's
//              (Recipe::kernels).
// Precision    Products in fp8 draw other power and have other neighbours than those in 16 bits: two rows a device.
#pragma once

#include "pipeweaver/costdb/operators.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipeweaver::costdb {
class CostDatabase;
}

namespace pipeweaver::emulator {

struct Recipe;

/// What a step's products are in.
enum class Precision : std::uint8_t { sixteen_bit, eight_bit };
[[nodiscard]] Precision precision_of(costdb::Dtype products);

/// What numbers rest on.
enum class Footing : std::uint8_t {
    fitted,    ///< on runs of this device in this precision
    borrowed,  ///< fitted on runs of another precision, or of a device of the same generation
    assumed,   ///< no run was at hand
    modelled   ///< nor any table of the device's operators: the peaks of its data sheet alone
};
[[nodiscard]] std::string_view name_of(Footing footing);

/// Time in a step / time alone, by class of kernel. 1: not fitted.
struct ClassFactors {
    double products = 1;      ///< GEMMs, those of experts too
    double attention = 1;     ///< fused or not
    double memory_bound = 1;  ///< norms, activations, losses; not the optimizer, which streams whatever the clock
    double traffic = 1;       ///< NCCL's collectives: not exchanges once a node over a network (Dispatcher)

    friend bool operator==(const ClassFactors&, const ClassFactors&) = default;
};

/// What was fitted for one device and precision. A factor of 1 and a time of 0 are not fitted.
struct FittedConstants {
    std::string_view device;
    Precision precision = Precision::sixteen_bit;
    ClassFactors factors{};
    double inside_gemms = 1;        ///< of tensor-parallel traffic that is hidden inside GEMMs, what stays exposed
    double grouped_gemm_share = 1;  ///< of the peak that the experts' GEMMs reach
    double expert_layer_us = 0;     ///< of routing to all-to-alls, of such a layer and a microbatch, both passes
    double tuned_products = 0;      ///< as InSituFactors has it
    std::string_view rows{};        ///< that they were fitted on, and the mean error
    double error_percent = 0;       ///< that mean error
    bool by_stacks = false;         ///< all of them are of stacks that are known: they tell nothing of a run of another
};

/// What was fitted for `device` in that precision; none: no run of it was at hand.
[[nodiscard]] std::optional<FittedConstants> fitted_constants(std::string_view device,
                                                              Precision precision = Precision::sixteen_bit);

/// The same, or, where there is none, of the device that stands for its generation.
[[nodiscard]] std::optional<FittedConstants> constants_like(std::string_view device,
                                                            Precision precision = Precision::sixteen_bit);

/// How many times its emulated length a step takes in nine of ten cases.
struct StepRange {
    double least = 1, most = 1;
};
/// On peaks alone: 254 runs of H100, emulated without its tables (0.79 to 1.24), and without the factors of its runs,
/// 1.22 on average (0.96 to 1.51).
constexpr StepRange on_peaks{0.8, 1.5};
/// Corrected by an anchor: planner/anchor.hpp.
constexpr StepRange once_anchored{0.8, 1.3};

/// What times of operators alone are multiplied with on a device.
struct InSituFactors {
    ClassFactors factors{};
    double inside_gemms = 1;    ///< tensor-parallel traffic, under TensorOverlap::inside_gemms, besides
    bool after_ampere = false;  ///< KernelFactors::attention_after_ampere counts
    Footing footing = Footing::assumed;
    std::string source;
    double error_percent = 0;  ///< of the runs that they were fitted on, the mean; 0: not known
    /// In place of `factors.products` for tuned stacks, whose products hide traffic (TensorOverlap::inside_gemms),
    /// where the device's row is of others. 0: the same.
    double tuned_products = 0;
};
[[nodiscard]] InSituFactors in_situ_factors(std::string_view device, Precision precision = Precision::sixteen_bit);

/// The factors as they are of the recipe's stack.
[[nodiscard]] InSituFactors in_stack(InSituFactors in_situ, const Recipe& recipe);

/// What a step's time on that device rests on: fitted where both its row and the recipe were.
[[nodiscard]] Footing footing(const InSituFactors& in_situ, const Recipe& recipe, std::string_view device);

/// How far a step's time is off on average, in percent: where it is fitted as the runs that it was fitted on, else as
/// runs of other stacks (of a device that has runs) or of other devices are when they are held back (docs/accuracy.md).
/// Of a modelled one: the far end of on_peaks, since a mean would be that of other devices.
[[nodiscard]] double error_percent(const InSituFactors& in_situ, Footing footing);

/// The factors that the cost database holds (`costdb calibrate --steps`), else those of the device.
[[nodiscard]] InSituFactors in_situ_factors(const costdb::CostDatabase& costs, std::string_view device,
                                            Precision precision = Precision::sixteen_bit);

}  // namespace pipeweaver::emulator
