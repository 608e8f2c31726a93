#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace pipeweaver;

namespace {

std::filesystem::path written(const std::string& content) { return testing::written("lines", content); }

std::vector<std::string> lines_of(const std::string& content) {
    const auto path = written(content);
    LineReader reader(path);
    std::vector<std::string> lines;
    std::string line;
    while (reader.next(line)) {
        lines.push_back(line);
        CHECK(reader.number() == lines.size());
    }
    std::filesystem::remove(path);
    return lines;
}

}  // namespace

TEST_CASE("a file is read line by line, with or without a last line end") {
    const std::vector<std::string> expected{"one", "", "three"};
    CHECK(lines_of("one\n\nthree\n") == expected);
    CHECK(lines_of("one\r\n\r\nthree") == expected);
    CHECK(lines_of(gzip("one\n\nthree\n")) == expected);
    CHECK(lines_of("").empty());
    CHECK(lines_of("\n") == std::vector<std::string>{""});
}

TEST_CASE("lines longer than the reader's block come whole, plain and zipped") {
    std::vector<std::string> expected;
    std::string text;
    for (std::size_t i = 0; i < 50; ++i) {
        expected.emplace_back(i * 7919, static_cast<char>('a' + i % 26));
        text += expected.back() + "\n";
    }
    CHECK(lines_of(text) == expected);
    CHECK(lines_of(gzip(text)) == expected);
}

TEST_CASE("a line above the limit, a cut or damaged gzip and a missing file are refused") {
    std::string line;
    const auto path = written("short\n" + std::string(300'000, 'x'));
    LineReader limited(path, 1000);
    CHECK(limited.next(line));
    CHECK_THROWS_WITH_AS(limited.next(line), (path.string() + ":2: the line is longer than 1000 bytes").c_str(), Error);

    std::string text;
    for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919) + "\n";
    std::string zipped = gzip(text);
    CHECK_THROWS_WITH_AS(lines_of(zipped.substr(0, zipped.size() - 9)),
                         (path.string() + ": gzip data is cut short").c_str(), Error);
    zipped[zipped.size() / 2] = static_cast<char>(zipped[zipped.size() / 2] ^ 0x55);
    CHECK_THROWS_WITH_AS(lines_of(zipped), (path.string() + ": gzip data is damaged").c_str(), Error);

    std::filesystem::remove(path);
    CHECK_THROWS_WITH_AS(LineReader{path}, (path.string() + ": cannot be read: No such file or directory").c_str(),
                         Error);
    CHECK_THROWS_AS(LineReader{std::filesystem::temp_directory_path()}, Error);
}
