// Small random schedule problems, and the optimum of tiny ones by trying everything.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/replay.hpp"

#include <optional>

namespace pipeweaver::search_tests {

/// What a random problem has; sizes are those of the largest.
struct Shape {
    std::uint32_t ranks = 3;
    std::uint32_t microbatches = 4;
    std::uint32_t stages = 4;  ///< on ranks in a loop
    bool split = false;        ///< backward as I and W
    bool modes = false;        ///< three memory modes per pair
    bool items = false;        ///< the first stage runs several items per microbatch
    bool capped = true;        ///< capacities near what one or two microbatches need
};

/// The n-th problem of a shape. It passes emulator::validate(), but no schedule of it need fit.
emulator::Problem random_problem(const Shape& shape, std::uint64_t number);

/// The smallest makespan of all schedules and modes that fit; nothing if none does. Pre: a dozen tasks at most.
std::optional<Duration> best_by_force(const emulator::Problem& problem);

}  // namespace pipeweaver::search_tests
