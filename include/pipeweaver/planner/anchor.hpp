// A measured launch that corrects what others are predicted to take: of one GPU or node, before it is projected to
// many.
//
// Time         All kernels that compute take so many times as long that the launch, emulated, takes what was measured.
//              Traffic keeps the links' figures, the host what the recipe says.
// Memory       What the fullest GPU took more than is emulated is held on every GPU of a step; where it took less, the
//              emulated peak stays: a launch of other sizes need not take less, too.
// Remains      Of 3,584 pairs of runs of H100, each of one model in one stack, one anchored on the other, nine of ten
//              took 0.80 to 1.26 times the emulated step on peaks alone; on tables, of 269 runs of H100, A100, H200 and
//              B200, 0.81 to 1.24.
#pragma once

#include "pipeweaver/emulator/recipe.hpp"

#include <memory>
#include <string>

namespace pipeweaver::planner {

/// What a file says, with what its launch is emulated to take.
struct Anchor {
    emulator::Anchored found;
    std::string device;  ///< workloads::Device::name
    std::string recipe;  ///< its name
};

/// The recipe with kernels that compute so many times as long.
[[nodiscard]] emulator::Recipe with_kernels(emulator::Recipe recipe, double factor);

/// The recipe as the anchor corrects it. Throws Error{input} for another device or recipe than the anchor's.
[[nodiscard]] emulator::Recipe anchored(emulator::Recipe recipe, const Anchor& anchor, const std::string& device);

/// Reads the file and emulates its launch a dozen times; null for an empty path. Throws Error{input} naming file and
/// key: for what is not as the format says, a launch without a layout or recomputation, a peak above the device's
/// memory, and a step that kernels of 0.2 to 5 times their time do not explain; Error{io}; and as emulate().
[[nodiscard]] std::shared_ptr<const Anchor> read_anchor(const std::string& path);

}  // namespace pipeweaver::planner
