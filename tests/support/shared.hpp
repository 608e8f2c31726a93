// Where the sources, the reference data and the referee lie, if they are on this machine, and what a test does where
// they are not.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace pipeweaver::testing {

/// The folder of the project's sources.
std::filesystem::path source_folder();

/// The folder named by PIPEWEAVER_SHARED, else "shared" beside the source folder; nothing if there is none.
/// Tests that need it call left_out() without it.
std::optional<std::filesystem::path> shared_folder();

/// Says that a test, or a part of one, cannot be run here, for want of `what`: prints "left out: WHAT" on stderr, which
/// the script counts as skipped. Where nothing may be left out, with PIPEWEAVER_MAY_SKIP=0 or, if that is not set,
/// CI=true in the environment, the test case fails.
void left_out(std::string_view what);

}  // namespace pipeweaver::testing
