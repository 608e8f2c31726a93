// Every input that a fuzzer has learnt (tools/fuzz.py) is read again.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/fuzz/readers.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

using namespace pipeweaver;

TEST_CASE("what the fuzzers have learnt is read or refused with a line") {
    for (const auto& reader : fuzz::readers()) {
        const std::string name(reader.first);
        const auto corpus = testing::source_folder() / "tests/fuzz/corpus" / name;
        std::size_t files = 0;
        for (const auto& file : std::filesystem::directory_iterator(corpus)) {
            const std::string path = file.path().string();
            CAPTURE(path);
            ++files;
            try {
                reader.second(read_file(file.path()));
            } catch (const Error& error) {
                CHECK(!std::string(error.what()).empty());
            }
        }
        CAPTURE(name);
        CHECK(files > 0);
    }
}
