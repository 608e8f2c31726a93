// A GPU's peak as a source prints it.
#pragma once

#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/validation/published_run.hpp"

namespace pipeweaver::validation {

/// What is allocated at the rank's peak, with what its kind adds. `gpus`: of the run.
[[nodiscard]] Bytes of_kind(MemoryKind kind, const emulator::RankMemory& rank, std::int64_t gpus);

}  // namespace pipeweaver::validation
