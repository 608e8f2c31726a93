#include "emit/plan/parts.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_below(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_symlink() || !entry.is_directory() || fs::is_empty(entry.path()))
            names.push_back(entry.path().lexically_relative(folder).string());
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

TEST_CASE("what an older plan left is removed with its folders, and nothing else") {
    const testing::TemporaryFolder temporary("older-plan");
    const fs::path folder = temporary.path() / "plan";
    write_files({{folder / "plan.json", "old"},
                 {folder / "replica-000/solution.json", "old"},
                 {folder / "replica-001/solution.json", "old"},
                 {folder / "replica-001/problem.json.gz", "old"},
                 {folder / "replica-1000/trace.json.gz", "old"},
                 {folder / "replica-002/actions.json", "old"},
                 {folder / "replica-000/actions/rank-000.json.gz", "old"},
                 {folder / "replica-000/actions/rank-1000.json.gz", "old"},
                 {folder / "replica-001/actions/rank-000.json.gz", "old"},
                 {folder / "replica-001/actions/rank-0.json.gz", "not ours"},
                 {folder / "replica-002/notes.txt", "a reader's own"},
                 {folder / "replica-03/solution.json", "not ours"},
                 {folder / "replica-004.bak/solution.json", "not ours"},
                 {folder / "torch/schedule.csv", "old"},
                 {folder / "torch/padding.json", "old"}});
    fs::create_directory_symlink("replica-03", folder / "replica-005");

    const std::vector<FileToWrite> written{{folder / "plan.json", "new"},
                                           {folder / "replica-000/solution.json", "new"}};
    write_files(written);
    emit::remove_older_plan(folder, {folder / "plan.json", folder / "replica-000/solution.json"});

    CHECK(names_below(folder) == std::vector<std::string>{"plan.json", "replica-000/solution.json",
                                                          "replica-001/actions/rank-0.json.gz", "replica-002/notes.txt",
                                                          "replica-004.bak/solution.json", "replica-005",
                                                          "replica-03/solution.json"});
    CHECK(read_file(folder / "replica-000/solution.json") == "new");
}

TEST_CASE("a new plan keeps the files of torch that it wrote") {
    const testing::TemporaryFolder temporary("older-torch");
    const fs::path& folder = temporary.path();
    const std::vector<FileToWrite> written{{folder / "torch/schedule.csv", "new"}};
    write_files({{folder / "torch/padding.json", "old"}, {folder / "replica-000/solution.json", "another plan's"}});
    write_files(written);
    emit::remove_older_targets(folder, {folder / "torch/schedule.csv"});
    CHECK(names_below(folder) == std::vector<std::string>{"replica-000/solution.json", "torch/schedule.csv"});
}
