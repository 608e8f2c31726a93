// What would make a step fit that does not: each change is emulated before it is told.
//
// Order        ZeRO stages, recomputation, both; then fewer replicas with more GPUs each.
// Determinism  A function of the options and the request: not of the executor.
#pragma once

#include "pipeweaver/planner/emulate_options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// Options in place of those that were said, with which the step fits.
struct FittingChange {
    std::string options;  ///< "--zero 3"
    Bytes peak{};         ///< of the fullest rank
};

/// Of each kind the first that fits. Pre: `request` is what the options ask for, and does not fit.
[[nodiscard]] std::vector<FittingChange> fitting_changes(const EmulateOptions& options, const EmulationRequest& request,
                                                         std::uint64_t seed, const Executor& execute);

}  // namespace pipeweaver::planner
