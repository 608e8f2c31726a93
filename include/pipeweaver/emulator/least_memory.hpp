// The least that stages hold, whatever the schedule: what partitions are cut by where memory is short.
#pragma once

#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/emulator/stages.hpp"

#include <vector>

namespace pipeweaver::emulator {

/// What each rank holds all the time for its stages of these chains, receive buffers left out; modules in these
/// layouts.
[[nodiscard]] std::vector<StaticMemory> held_always(const Setup& setup, const std::vector<Chain>& chains,
                                                    const ModuleLayouts& layouts = {});

/// The memory of one pass with every block recomputed.
struct LeastPass {
    Bytes held;       ///< from the start of its forward to the end of its backward
    Bytes transient;  ///< on top of it while its forward or its backward runs
    Bytes message;    ///< what comes in from the stage before
};
[[nodiscard]] LeastPass least_pass(const Setup& setup, const StageLayers& stage, const std::vector<PassShape>& shapes,
                                   const ModuleLayouts& layouts = {});

}  // namespace pipeweaver::emulator
