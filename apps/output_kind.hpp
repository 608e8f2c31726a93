// Which kind of command wrote a folder: files of two kinds in one would be read as one answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace pipeweaver::apps {

enum class OutputKind : std::uint8_t { plan, study, recommend };

/// Throws Error{input} where the folder has what a command of another kind writes, naming the file.
void require_output_kind(const std::filesystem::path& folder, OutputKind kind);

/// "replaces the plan of MODEL on 32 x DEVICE": what a plan in this folder does; nothing where there is no plan that
/// can be read. Throws Error{io} where the file of one cannot be.
[[nodiscard]] std::string replaced_plan(const std::filesystem::path& folder);

}  // namespace pipeweaver::apps
