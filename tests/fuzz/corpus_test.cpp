// Every input that a fuzzer has learnt (tools/fuzz.py) is read again, from the archives that tools/corpus.py writes.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/fuzz/readers.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string>
#include <string_view>

using namespace pipeweaver;

namespace {

// A number of a header, in octal digits.
std::size_t number_in(std::string_view field) {
    std::size_t number = 0;
    REQUIRE(std::from_chars(field.data(), field.data() + field.size(), number, 8).ec == std::errc{});
    return number;
}

// The bytes of each case by its name. Of ustar (POSIX.1-1988) an archive has plain files alone, each a header of one
// block and its bytes in whole blocks; two empty blocks are its end.
std::map<std::string, std::string> cases_in(std::string_view tar) {
    constexpr std::size_t block = 512;
    std::map<std::string, std::string> cases;
    std::size_t at = 0;
    while (at + 2 * block <= tar.size() && tar[at] != '\0') {
        const std::string_view header = tar.substr(at, block);
        REQUIRE(header.substr(257, 5) == "ustar");
        REQUIRE(header[156] == '0');
        const std::string_view name = header.substr(0, 100);
        const std::size_t size = number_in(header.substr(124, 12));
        at += block;
        REQUIRE(size <= tar.size() - at);
        REQUIRE(cases.emplace(name.substr(0, name.find('\0')), tar.substr(at, size)).second);
        at += (size + block - 1) / block * block;
    }
    REQUIRE(at + 2 * block <= tar.size());
    REQUIRE(tar.find_first_not_of('\0', at) == std::string_view::npos);
    return cases;
}

}  // namespace

TEST_CASE("what the fuzzers have learnt is read or refused with a line") {
    for (const auto& [reader, read] : fuzz::readers()) {
        const auto archive = testing::source_folder() / fmt::format("tests/fuzz/corpus/{}.tar.gz", reader);
        CAPTURE(archive.string());
        const auto cases = cases_in(read_file(archive));
        CHECK(!cases.empty());
        for (const auto& one : cases) {
            CAPTURE(one.first);
            try {
                read(one.second);
            } catch (const Error& error) {
                CHECK(!std::string(error.what()).empty());
            }
        }
    }
}
