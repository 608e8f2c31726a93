// Where files go: links, modes, pipes and devices, what killed processes left, one file under two names.
#include "base/places.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace pipeweaver;
namespace fs = std::filesystem;

namespace {

ErrorKind kind_of_failure(const fs::path& path) {
    try {
        write_files({{path, "x"}});
    } catch (const Error& error) {
        return error.kind();
    }
    FAIL("it was written");
    return ErrorKind::input;
}

std::size_t files_in(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("what a link leads to is replaced, not the link, and keeps its mode") {
    const testing::TemporaryFolder temporary("links");
    const fs::path& top = temporary.path();
    write_files({{top / "real" / "file", "old"}});
    fs::permissions(top / "real" / "file", fs::perms{0640});
    fs::create_symlink("real/file", top / "link");
    fs::create_symlink("link", top / "again");
    fs::create_symlink("real/none", top / "dangling");
    write_files({{top / "again", "new"}, {top / "dangling", "made"}});
    CHECK(fs::is_symlink(top / "again"));
    CHECK(fs::is_symlink(top / "link"));
    CHECK(read_file(top / "real" / "file") == "new");
    CHECK(fs::status(top / "real" / "file").permissions() == fs::perms{0640});
    CHECK(fs::is_symlink(top / "dangling"));
    CHECK(read_file(top / "real" / "none") == "made");
    CHECK(files_in(top / "real") == 2);
}

TEST_CASE("no file goes where a folder, a file that is read-only or a circle of links is, and nothing is left") {
    const testing::TemporaryFolder temporary("no-place");
    const fs::path& top = temporary.path();
    fs::create_directory(top / "folder");
    write_files({{top / "locked", "mine"}});
    fs::permissions(top / "locked", fs::perms{0444});
    fs::create_symlink("b", top / "a");
    fs::create_symlink("a", top / "b");
    for (const char* name : {"folder", "locked", "a"}) CHECK(kind_of_failure(top / name) == ErrorKind::io);
    CHECK(kind_of_failure(top / std::string(300, 'n')) == ErrorKind::io);
    CHECK(kind_of_failure(top / "a" / "below") == ErrorKind::io);
    CHECK(read_file(top / "locked") == "mine");
    CHECK(files_in(top) == 4);
    // One that cannot be written leaves the others as they were.
    write_files({{top / "first", "old"}});
    CHECK_THROWS_AS(write_files({{top / "first", "new"}, {top / "folder", "x"}}), Error);
    CHECK(read_file(top / "first") == "old");
    CHECK(files_in(top) == 5);
}

TEST_CASE("a FIFO and a device are written through and stay what they are") {
    const testing::TemporaryFolder temporary("streams");
    const fs::path fifo = temporary.path() / "fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    std::string got;
    std::thread reader([&] { got = read_file(fifo); });
    write_files({{fifo, std::string(200'000, 'y')}, {temporary.path() / "beside", "x"}, {"/dev/null", "gone"}});
    reader.join();
    CHECK(got == std::string(200'000, 'y'));
    CHECK(fs::is_fifo(fifo));
    CHECK(fs::is_character_file("/dev/null"));
    CHECK(kind_of_failure("/dev/full") == ErrorKind::io);
    // A stream that takes nothing: no file is replaced.
    CHECK_THROWS_AS(write_files({{"/dev/full", "x"}, {temporary.path() / "beside", "new"}}), Error);
    CHECK(read_file(temporary.path() / "beside") == "x");
}

TEST_CASE("two names of one file are refused, and the file stays") {
    const testing::TemporaryFolder temporary("one-file");
    const fs::path& top = temporary.path();
    write_files({{top / "file", "old"}});
    fs::create_symlink("file", top / "link");
    fs::create_directory_symlink(".", top / "here");
    for (const fs::path& other : {top / "file", top / "link", top / "here" / "file"}) {
        CAPTURE(other.string());
        CHECK_THROWS_AS(write_files({{top / "file", "1"}, {other, "2"}}), Error);
        CHECK(is_same_file(top / "file", other));
    }
    CHECK_THROWS_AS(write_files({{top / "none", "1"}, {top / "here" / "none", "2"}}), Error);
    CHECK(is_same_file(top / "none", top / "here" / "none"));
    CHECK(!is_same_file(top / "none", top / "file"));
    CHECK(read_file(top / "file") == "old");
    CHECK(!fs::exists(top / "none"));
    CHECK(files_in(top) == 3);
}

TEST_CASE("what a process left that was killed is removed by the next that writes there, and nothing else") {
    const testing::TemporaryFolder temporary("killed");
    const fs::path& top = temporary.path();
    const pid_t child = ::fork();
    if (child == 0) {
        PendingFiles pending;
        pending.add({top / "plan.json", "half"});
        pending.add({top / std::string(250, 'n'), "half"});
        ::_exit(0);  // no destructor runs
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(files_in(top) == 2);
    // Of a process that lives, of another machine, and of who knows whom.
    const fs::path living = temporary_name(top / "plan.json", 7), other = top / ".plan.json.far-1-2-3.tmp";
    for (const fs::path& one : {living, other, top / ".x.tmp"}) write_files({{one, "kept"}});
    CHECK(files_in(top) == 3);
    PendingFiles pending;
    pending.add({top / "plan.json", "whole"});
    CHECK(pending.finish() == std::vector<fs::path>{top / "plan.json"});
    CHECK(files_in(top) == 4);
}
