// Where the collected measurements and facts lie, if they do: tests that compare with them are left out without.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace pipeweaver {

inline std::optional<std::filesystem::path> shared_folder() {
    // The environment names it where the source lies elsewhere (a second checkout).
    const char* named = std::getenv("PIPEWEAVER_SHARED");
    const std::filesystem::path folder = named != nullptr ? named : PIPEWEAVER_SOURCE_DIR "/../shared";
    if (!std::filesystem::exists(folder / "data")) return std::nullopt;
    return folder;
}

}  // namespace pipeweaver
