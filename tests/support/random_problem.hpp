// Random schedule problems with a valid schedule each, as file texts: what the verifier and all readers are tried on.
// Made by a simple list schedule of its own, not by emulator/ or search/.
#pragma once

#include <cstdint>
#include <string>

namespace pipeweaver::testing {

/// A problem file and a solution file for it.
struct Instance {
    std::string problem;
    std::string solution;
};

/// The instance of this number; equal seeds give equal texts. 1 to 4 ranks; chains and DAGs of modules with different
/// numbers of items, frozen and trainable; tails, lags, capacities from just enough to unlimited; pairs with modes,
/// forward transients and split backwards; tasks numbered in no useful order. The solution is valid in every claim;
/// some have idle time that an earliest-start schedule would not have.
[[nodiscard]] Instance random_instance(std::uint64_t seed);

/// What a problem of a wanted shape has; sizes are those of the largest.
struct Shape {
    std::uint32_t ranks = 3;
    std::uint32_t microbatches = 4;
    std::uint32_t stages = 4;  ///< on ranks in a loop
    bool split = false;        ///< backward as I and W
    bool modes = false;        ///< three memory modes per pair
    bool items = false;        ///< the first stage runs several items per microbatch, or none
    bool capped = true;        ///< capacities near what one or two microbatches need
};

/// The problem file of this number and shape, in small numbers, so that schedules tie. No schedule of it need fit.
[[nodiscard]] std::string random_problem_text(const Shape& shape, std::uint64_t number);

}  // namespace pipeweaver::testing
