#include "pipeweaver/base/option_values.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdio>

using namespace pipeweaver;

namespace {

// What a shell hands to a program as its words.
std::string as_a_shell_reads(const std::string& words) {
    std::string text;
    std::FILE* pipe = popen(("printf '%s|' " + words).c_str(), "r");  // NOLINT(bugprone-command-processor): its work
    REQUIRE(pipe != nullptr);
    std::array<char, 512> part{};
    for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), n);
    REQUIRE(pclose(pipe) == 0);
    return text;
}

}  // namespace

TEST_CASE("plain words stay as they are, all others are quoted") {
    CHECK(quoted_for_shell("h100-sxm:16") == "h100-sxm:16");
    CHECK(quoted_for_shell("a/b_c.d=e,f+g%h@i") == "a/b_c.d=e,f+g%h@i");
    CHECK(quoted_for_shell("") == "''");
    CHECK(quoted_for_shell("a b") == "'a b'");
    CHECK(quoted_for_shell("it's") == R"('it'\''s')");
    for (const char c : std::string("`$\"\\{}[]()<>|&;*?!#~^'\n\t ")) {
        CAPTURE(c);
        CHECK(quoted_for_shell(std::string("a") + c) != std::string("a") + c);
    }
}

TEST_CASE("a shell reads back every text that is quoted for it") {
    Random random(7);
    std::string words, expected;
    for (int i = 0; i < 200; ++i) {
        std::string text;
        for (std::uint64_t n = random.below(9); n > 0; --n) text += static_cast<char>(1 + random.below(127));
        words += quoted_for_shell(text) + " ";
        expected += text + "|";
    }
    CHECK(as_a_shell_reads(words) == expected);
}

TEST_CASE("values keep the order in which they were set, and the last text of each") {
    OptionValues values;
    values.set("batch", "it`s {one}.jsonl");
    values.set("tp", "4");
    values.set_flag("any-memory");
    values.set("batch", "-x.jsonl");
    values.set("pp", "2");
    values.erase("pp");
    values.erase("dp");
    CHECK(values.command("pipeweaver emulate") == "pipeweaver emulate --tp 4 --any-memory --batch=-x.jsonl");
    CHECK(values.find("tp")->text == "4");
    CHECK(values.find("pp") == nullptr);
}

namespace {

struct Several : OptionTable {
    Several() {
        text("name", name, "NAME", "");
        choice("way", way, {"given", "padded"}, "");
        integer("count", count, 0, 100, "");
        integer("most", most, 0, 100, "");
        number("factor", factor, 0, 1e9, "");
        flag("loud", loud, "");
        parsed("silent", "X", "", [](const std::string&) {});
    }

    std::string name, way = "given";
    std::int64_t count = 3;
    std::optional<std::int64_t> most;
    double factor = 1;
    bool loud = false;
};

}  // namespace

TEST_CASE("a table says the values that are not their defaults, and takes them again") {
    Several one;
    CHECK(one.values().all().empty());
    one.name = "a b";
    one.way = "padded";
    one.count = 0;
    one.most = 100;
    one.factor = 1e-7;
    one.loud = true;
    CHECK(one.values().command("x") == "x --name 'a b' --way padded --count 0 --most 100 --factor 0.0000001 --loud");

    Several other;
    const OptionValues values = one.values();
    for (const auto& value : values.all())
        for (const auto& entry : other.entries())
            if (entry.name == value.name && entry.set) entry.set(value.text);
    CHECK(other.factor == one.factor);
    CHECK(other.count == 0);
    CHECK(other.most == 100);
}

TEST_CASE("more values go to the end, each in place of an earlier one") {
    OptionValues given, more;
    given.set("count", "4");
    given.set("name", "n");
    more.set_flag("loud");
    more.set("count", "5");
    given.add(more);
    CHECK(given.command("x") == "x --name n --loud --count 5");
}
