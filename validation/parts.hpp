// GPUs that are another device's chip with other memory, links or power: no table of costs is of them.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/emulator/recipe.hpp"

#include <optional>
#include <string_view>

namespace pipeweaver::validation {

struct Part {
    std::string_view gpu;              ///< as rows name it, compared without case; empty: their note says so
    std::string_view note{};           ///< part of it, in lower case
    std::string_view name;             ///< what tables of errors call it
    std::string_view device;           ///< whose costs its are
    Bandwidth node_link{};             ///< 0: the device's
    emulator::KernelFactors slower{};  ///< over the device's
    std::string_view about;
};

/// Nothing: the name is a device's own, or nobody's.
[[nodiscard]] std::optional<Part> part_named(std::string_view gpu, std::string_view note = {});

}  // namespace pipeweaver::validation
