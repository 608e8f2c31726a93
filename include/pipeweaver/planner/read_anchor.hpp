// Reads a measured launch, and emulates it.
//
// Format       "pipeweaver-anchor/1": docs/formats.md.
// Determinism  A function of the file and the files that its launch names.
#pragma once

#include "pipeweaver/planner/anchor.hpp"

#include <memory>
#include <string>

namespace pipeweaver::planner {

/// Reads the file and emulates its launch a dozen times; null for an empty path. Throws Error{input} naming file and
/// key: for what is not as the format says, a launch without a layout or recomputation, a peak above the device's
/// memory, and a step that kernels of 0.2 to 5 times their time do not explain; Error{io}; and as emulate().
[[nodiscard]] std::shared_ptr<const Anchor> read_anchor(const std::string& path);

}  // namespace pipeweaver::planner
