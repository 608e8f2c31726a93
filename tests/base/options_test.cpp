#include "pipeweaver/base/options.hpp"

#include "pipeweaver/base/error.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;

TEST_CASE("a number of an option is read in full and kept inside its range") {
    CHECK(parse_number("--x", "1.25", 1, 10) == 1.25);
    CHECK(parse_number("--x", "1", 1, 10) == 1);
    CHECK(parse_number("--x", "10", 1, 10) == 10);
    for (const char* text : {"0.999", "10.001", "1.5x", "", " 2", "nan", "inf", "1e0", "--"}) {
        CAPTURE(text);
        const std::string message = fmt::format("--x: is '{}', allowed are numbers from 1 to 10", text);
        CHECK_THROWS_WITH_AS(parse_number("--x", text, 1, 10), message.c_str(), Error);
    }
}

TEST_CASE("a number may come from the command line or a configuration, and else stays as it is") {
    OptionTable options;
    double slowdown = 1, other = 2;
    options.number("slowdown", slowdown, 1, 10, "");
    options.number("other", other, 1, 10, "");
    const JsonDocument configuration("c.json", R"({"slowdown":1.5})");
    options.configure(configuration.root());

    CHECK(slowdown == 1.5);
    CHECK(other == 2);

    const JsonDocument wrong("c.json", R"({"slowdown":0.5})");
    CHECK_THROWS_WITH_AS(options.configure(wrong.root()),
                         "c.json: slowdown: is '0.5', allowed are numbers from 1 to 10", Error);
}
