// Where the sources, the reference data and the referee lie, if they are on this machine.
#pragma once

#include <filesystem>
#include <optional>

namespace pipeweaver::testing {

/// The folder of the project's sources.
std::filesystem::path source_folder();

/// The folder named by PIPEWEAVER_SHARED, else "shared" beside the source folder; nothing if there is none.
/// Tests that need it say so and pass without it.
std::optional<std::filesystem::path> shared_folder();

}  // namespace pipeweaver::testing
