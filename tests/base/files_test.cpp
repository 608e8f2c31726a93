#include "pipeweaver/base/files.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace pipeweaver;
namespace fs = std::filesystem;

TEST_CASE("a folder for output is there at once, and goes again where nothing came into it") {
    const testing::TemporaryFolder temporary("output-folder");
    const fs::path outer = temporary.path() / "a", inner = outer / "b" / "c";
    {
        const OutputFolder folder(inner);
        CHECK(fs::is_directory(inner));
    }
    CHECK(!fs::exists(outer));
    CHECK(fs::is_directory(temporary.path()));  // it was there before
    {
        const OutputFolder folder(inner);
        write_files({{outer / "kept.txt", "mine"}});
    }
    CHECK(!fs::exists(outer / "b"));
    CHECK(read_file(outer / "kept.txt") == "mine");
    { const OutputFolder folder(outer), working({}), again(outer / ""); }
    CHECK(fs::is_directory(outer));
}

TEST_CASE("a folder for output that cannot be is an error of files, and leaves nothing") {
    const testing::TemporaryFolder temporary("no-output-folder");
    write_files({{temporary.path() / "file", "x"}});
    for (const char* path : {"file", "file/below"}) try {
            const OutputFolder folder(temporary.path() / path);
            FAIL("it was made");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::io);
        }
    CHECK(read_file(temporary.path() / "file") == "x");
}

TEST_CASE("files that are given up leave no folder that was made for them") {
    const testing::TemporaryFolder temporary("given-up");
    fs::create_directories(temporary.path() / "old");
    {
        PendingFiles pending;
        pending.add({temporary.path() / "new" / "inner" / "one.txt", "1"});
        pending.add({temporary.path() / "old" / "two.txt", "2"});
    }
    CHECK(!fs::exists(temporary.path() / "new"));
    CHECK(fs::is_empty(temporary.path() / "old"));
    PendingFiles pending;
    pending.add({temporary.path() / "new" / "one.txt", "1"});
    CHECK(pending.finish().size() == 1);
    CHECK(read_file(temporary.path() / "new" / "one.txt") == "1");
}
