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
        const std::string message = fmt::format("--x: is '{}', must be a number from 1 to 10", text);
        CHECK_THROWS_WITH_AS(parse_number("--x", text, 1, 10), message.c_str(), Error);
    }
}

TEST_CASE("all that is missing is named in one line") {
    const Needed given{true, "--out DIR", "a folder"}, model{false, "--model MODEL", "a model"},
        runs{false, "RUNS", "x"};
    require_given({given});
    CHECK_THROWS_WITH_AS(require_given({model, given}), "missing --model MODEL: a model", Error);
    CHECK_THROWS_WITH_AS(require_given({model, given, runs}), "missing --model MODEL: a model; RUNS: x", Error);
    CHECK_THROWS_WITH_AS(fail_missing("RUNS", "x"), "missing RUNS: x", Error);
}

TEST_CASE("a choice that is none says what it must be") {
    OptionTable options;
    std::string one, of_two;
    options.choice("one", one, {"a"}, "");
    options.choice("of-two", of_two, {"a", "b"}, "");
    const auto refuse = [&](const char* text) { options.configure(JsonDocument("c.json", text).root()); };
    CHECK_THROWS_WITH_AS(refuse(R"({"one":"c"})"), "c.json: one: is 'c', must be a", Error);
    CHECK_THROWS_WITH_AS(refuse(R"({"of-two":"c"})"), "c.json: of-two: is 'c', must be one of a, b", Error);
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
    CHECK_THROWS_WITH_AS(options.configure(wrong.root()), "c.json: slowdown: is '0.5', must be a number from 1 to 10",
                         Error);
}
