// Steps' answers as instances decode them that never wait for the last one of a step.
//
// Queue        answers of a step are given once all steps but so many in front of it have been trained, behind those
//              that still wait; instances take them as in generation.hpp, each to who has the fewest.
// Weights      come in flight: when a step has been trained, each instance ends its token step, takes them and goes on
//              with the answers that it has.
// Units        Duration is integer nanoseconds.
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/rl/generation.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace pipeweaver::rl {

/// When a step has been trained, from when each of its answers ends: not before any of these. Asked for one step after
/// the other.
using Training = std::function<Duration(const std::vector<Duration>& ends)>;

struct Flight {
    std::size_t steps = 1;  ///< that are played
    std::size_t ahead = 1;  ///< that may be generated or trained at once
    Duration weights{};     ///< to take them
};

struct Flown {
    std::vector<Duration> trained;   ///< by step: when it has been
    std::vector<Duration> decoding;  ///< all instances together, until its weights come
};

/// Every step has these answers. Pre: as generate(); flight.ahead >= 1. Time O(steps * answers * log).
[[nodiscard]] Flown fly(const Decoding& decoding, std::span<const std::int64_t> answers, std::int64_t instances,
                        const Flight& flight, const Training& training);

}  // namespace pipeweaver::rl
