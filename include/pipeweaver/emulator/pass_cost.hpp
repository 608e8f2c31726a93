// What passes cost, and what that figure is made of.
#pragma once

#include "pipeweaver/emulator/operators.hpp"

#include <array>
#include <cstdint>
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
    /// The part of `time` in which compute waits for another stream, by that stream; 0 for compute itself.
    std::array<Duration, streams> exposed{};
    std::int64_t kernels = 0;  ///< operators that run

    Duration total() const;  ///< of all work; more than `time` where streams run beside each other
    PassCost& operator+=(const PassCost& other);
    friend PassCost operator*(std::int64_t times, const PassCost& cost);
};

/// Operators and what each of them takes in a step.
struct PricedOperators {
    std::vector<Operator> operators;
    std::vector<Duration> duration;  ///< per operator
    PassCost cost;                   ///< if all streams are free when they begin
};

/// Lists of operators that a pass runs through, `times` times one after the other.
struct PassPiece {
    std::vector<PricedOperators> lists;
    std::size_t module = 0;  ///< whose layers they are
    std::int64_t layer = 0;  ///< the first of them
    std::int64_t times = 1;
    bool blocks = true;           ///< false: embedding, output head or projector
    std::int64_t parameters = 0;  ///< of one of them, on one GPU; those of experts left out
    bool trained = true;
};

}  // namespace pipeweaver::emulator
