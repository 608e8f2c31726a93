// Whether a step's host would be waited for, by recipes that never wait for theirs.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/emulate.hpp"

#include <optional>

namespace pipeweaver::planner {

/// What the step takes with the host of emulator::launched_by_host(), where that is at least a tenth more: such recipes
/// are of layers in CUDA graphs or compiled, and a launch that has neither takes so long. None: less, or the recipe
/// knows its host, or an anchor holds it. Emulates once more; throws as emulate().
/// Pre: `emulation` is that of `request`.
[[nodiscard]] std::optional<HostBound> host_bound(const EmulationRequest& request, const Emulation& emulation,
                                                  const Executor& execute);

}  // namespace pipeweaver::planner
