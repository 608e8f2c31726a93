// megatron: how a rung is launched, as a fragment of a launch script (megatron.sh: arrays of flags) and as keys of
// Megatron-Bridge's configuration (megatron.yaml).
#pragma once

#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/launch/launch.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::emit {

/// The rule under which Megatron does not run the launch, "megatron: ..."; none: it does.
[[nodiscard]] std::optional<std::string> why_no_megatron(const launch::Launch& launch);

/// Pre: why_no_megatron() has nothing to say.
[[nodiscard]] std::vector<FileToWrite> megatron_files(const launch::Launch& launch, const std::filesystem::path& out);

[[nodiscard]] std::vector<std::string> how_to_run_megatron(const WrittenFiles& written);

}  // namespace pipeweaver::emit
