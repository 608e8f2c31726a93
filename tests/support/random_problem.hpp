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

}  // namespace pipeweaver::testing
