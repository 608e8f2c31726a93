// Where the reference data and the referee lie, if they are on this machine.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace pipeweaver::testing {

/// The folder named by PIPEWEAVER_SHARED, else "shared" beside the source folder; nothing if there is none.
/// Tests that need it say so and pass without it.
inline std::optional<std::filesystem::path> shared_folder() {
    const char* named = std::getenv("PIPEWEAVER_SHARED");
    const auto folder = named != nullptr ? std::filesystem::path(named)
                                         : std::filesystem::path(PIPEWEAVER_SOURCE_DIR).parent_path() / "shared";
    if (!std::filesystem::is_directory(folder)) return std::nullopt;
    return folder;
}

}  // namespace pipeweaver::testing
