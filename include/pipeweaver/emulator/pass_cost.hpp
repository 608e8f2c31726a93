// What passes cost, and what that figure is made of.
//
// In situ      Kernels in a training step run slower than alone (clocks, caches, neighbours), and tensor-parallel
//              communication is partly hidden. Two factors per device say how much; each with the runs it was fitted
//              on.
#pragma once

#include "pipeweaver/emulator/operators.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace pipeweaver::emulator {

/// Time of a pass by operator class and basis.
struct PassCost {
    struct Share {
        Duration time{};
        double error_ns = 0;  ///< standard error if all errors of the class go the same way: sum of time * error
    };
    static constexpr std::size_t bases = 4;
    std::array<std::array<Share, bases>, operator_classes> shares{};

    Duration total() const;
    PassCost& operator+=(const PassCost& other);
    friend PassCost operator*(std::int64_t times, const PassCost& cost);
};

/// Factors of a device, fitted once on published runs and documented with them.
struct InSituFactors {
    double compute = 1;     ///< on GEMM, attention and memory-bound kernels
    double tp_exposed = 1;  ///< share of tensor-parallel communication that is not hidden
    std::string source;
};
[[nodiscard]] InSituFactors in_situ_factors(std::string_view device);

/// The factors that the cost database holds (`costdb calibrate --steps`), else those of the device.
[[nodiscard]] InSituFactors in_situ_factors(const costdb::CostDatabase& costs, std::string_view device);

/// The attention over equal sequences that the database is asked for in place of a packed one.
[[nodiscard]] costdb::Attention asked_for(const PackedAttention& query);

/// What the database says of an operator alone.
[[nodiscard]] costdb::Cost ask(const costdb::CostDatabase& costs, const Operator& op);

/// Cost of operators that run one after the other.
[[nodiscard]] PassCost price(std::span<const Operator> operators, const costdb::CostDatabase& costs,
                             const InSituFactors& factors);

}  // namespace pipeweaver::emulator
