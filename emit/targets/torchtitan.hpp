// torchtitan: how a rung is launched, as a fragment of a launch script (torchtitan.sh: an array of flags) for
// torchtitan 0.3.0.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/launch/launch.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::emit {

/// The rule under which torchtitan does not run the launch, "torchtitan: ..."; none: it does.
[[nodiscard]] std::optional<std::string> why_no_torchtitan(const launch::Launch& launch);

/// Pre: why_no_torchtitan() has nothing to say.
[[nodiscard]] std::vector<FileToWrite> torchtitan_files(const launch::Launch& launch, const std::filesystem::path& out);

}  // namespace pipeweaver::emit
