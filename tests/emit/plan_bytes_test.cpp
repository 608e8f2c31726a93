// Builds of other flags plan the same bytes: the release libraries, and those with assertions and sanitizers.
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

using namespace pipeweaver;

// PIPEWEAVER_PLAN_DIGESTS names a file that the first program which runs this writes, and each other one compares with.
TEST_CASE("the files of a plan are the same bytes in every build" * testing::on_both_libraries()) {
    const testing::TemporaryFolder temporary("plan-bytes");
    const auto folder = temporary.path() / "plan";
    const auto request = testing::small_request(2);
    std::set<std::string> lines;
    for (const auto& path : emit::write_plan_folder(request.job, request.batch, testing::planned(request), folder,
                                                    {{"format", "pipeweaver-run/1"}}, in_order))
        lines.insert(sha256(read_file(path)) + "  " + path.lexically_relative(folder).string() + "\n");
    std::string digests;
    for (const auto& line : lines) digests += line;
    CHECK(lines.size() > 5);

    const char* agreed = std::getenv("PIPEWEAVER_PLAN_DIGESTS");
    if (agreed == nullptr) return;
    if (std::filesystem::exists(agreed))
        CHECK(digests == read_file(agreed));
    else
        write_files({{agreed, digests}});
}
