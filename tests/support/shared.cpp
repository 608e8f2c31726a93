#include "tests/support/shared.hpp"

#include <cstdlib>

namespace pipeweaver::testing {

std::filesystem::path source_folder() { return PIPEWEAVER_SOURCE_DIR; }

std::optional<std::filesystem::path> shared_folder() {
    const char* named = std::getenv("PIPEWEAVER_SHARED");
    const auto folder = named != nullptr ? std::filesystem::path(named) : source_folder().parent_path() / "shared";
    if (!std::filesystem::is_directory(folder)) return std::nullopt;
    return folder;
}

}  // namespace pipeweaver::testing
