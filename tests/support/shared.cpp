#include "tests/support/shared.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace pipeweaver::testing {

namespace {

bool may_skip() {
    if (const char* said = std::getenv("PIPEWEAVER_MAY_SKIP")) return std::string_view(said) != "0";
    const char* ci = std::getenv("CI");
    return ci == nullptr || std::string_view(ci) != "true";
}

}  // namespace

std::filesystem::path source_folder() { return PIPEWEAVER_SOURCE_DIR; }

std::optional<std::filesystem::path> shared_folder() {
    const char* named = std::getenv("PIPEWEAVER_SHARED");
    const auto folder = named != nullptr ? std::filesystem::path(named) : source_folder().parent_path() / "shared";
    if (!std::filesystem::is_directory(folder)) return std::nullopt;
    return folder;
}

void left_out(std::string_view what) {
    if (may_skip())
        fmt::print(stderr, "left out: {}\n", what);
    else
        FAIL_CHECK(fmt::format("left out: {}; here nothing may be (CI=true or PIPEWEAVER_MAY_SKIP=0)", what));
}

}  // namespace pipeweaver::testing
