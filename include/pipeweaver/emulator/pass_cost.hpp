// What passes cost, and what that figure is made of.
//
// In situ      Kernels in a training step run slower than alone (clocks, caches, neighbours), and tensor-parallel
//              communication is partly hidden. Two factors per device say how much; each with the runs it was fitted
//              on.
#pragma once

#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/emulator/training.hpp"

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emulator {

/// Time of a pass, and its work by operator class and basis.
struct PassCost {
    struct Share {
        Duration time{};
        double error_ns = 0;  ///< standard error if all errors of the class go the same way: sum of time * error
    };
    static constexpr std::size_t bases = 4;
    std::array<std::array<Share, bases>, operator_classes> shares{};

    Duration time{};  ///< how long it lasts
    /// Of that: compute waits for another stream, by which. Compute itself: 0.
    std::array<Duration, streams> exposed{};
    std::int64_t kernels = 0;  ///< operators that run

    Duration total() const;  ///< of all work; more than `time` where streams run beside each other
    PassCost& operator+=(const PassCost& other);
    friend PassCost operator*(std::int64_t times, const PassCost& cost);
};

/// Factors of a device, fitted once on published runs and documented with them.
struct InSituFactors {
    double compute = 1;  ///< on GEMM, attention and memory-bound kernels
    /// Exposed time of tensor-parallel communication over its time alone. What experts and context parallel groups
    /// exchange is slowed down by it where it is above 1, but never hidden.
    double tp_exposed = 1;
    std::string source;
};
[[nodiscard]] InSituFactors in_situ_factors(std::string_view device);

/// The factors that the cost database holds (`costdb calibrate --steps`), else those of the device.
[[nodiscard]] InSituFactors in_situ_factors(const costdb::CostDatabase& costs, std::string_view device);

/// The attention over equal sequences that the database is asked for in place of a packed one.
[[nodiscard]] costdb::Attention asked_for(const PackedAttention& query);

/// What the database says of an operator alone.
[[nodiscard]] costdb::Cost ask(const costdb::CostDatabase& costs, const Operator& op);

/// A factor on an operator's time beside the in-situ ones.
using TimeFactor = std::function<double(const Operator&)>;

/// Operators and what each of them takes in a step.
struct PricedOperators {
    std::vector<Operator> operators;
    std::vector<Duration> duration;  ///< per operator
    PassCost cost;                   ///< if all streams are free when they begin
};

/// Asks for the time of every operator. Traffic on Stream::copy goes over `training.host_link`. Throws as the database
/// does.
[[nodiscard]] PricedOperators price(std::vector<Operator> operators, const costdb::CostDatabase& costs,
                                    const InSituFactors& factors, const Training& training,
                                    const TimeFactor& what_if = {});

/// The cost alone, of operators under the default training.
[[nodiscard]] PassCost price(std::span<const Operator> operators, const costdb::CostDatabase& costs,
                             const InSituFactors& factors);

}  // namespace pipeweaver::emulator
