#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/random.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;

namespace {

std::string as_json(std::string_view text) { return JsonDocument::yaml("c.yaml", text).canonical(); }

void check_refused(std::string_view text, const char* message) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(as_json(text), message, Error);
}

std::string refusal_of(std::string_view text) {
    try {
        static_cast<void>(as_json(text));
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::string repeated(std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

}  // namespace

TEST_CASE("YAML gives the values that JSON gives") {
    const auto text = R"(# a plan
model: dip-vlm-m      # a name
tp: 8
budget: 300ms
capacity: 80GiB
ratio: -1.5e2
layers: [1, 2, {deep: "yes"}]
modules:
  - name: 'vit'
    trainable: true
    note: |
      two
      lines
  - name: "\u00e4"
    trainable: FALSE
nothing: ~
empty:
)";
    const JsonDocument json("c.json", R"({"model":"dip-vlm-m","tp":8,"budget":"300ms","capacity":"80GiB",
        "ratio":-150.0,"layers":[1,2,{"deep":"yes"}],"nothing":null,"empty":null,
        "modules":[{"name":"vit","trainable":true,"note":"two\nlines\n"},{"name":"ä","trainable":false}]})");

    CHECK(as_json(text) == json.canonical());
}

TEST_CASE("JSON is YAML as well, to the last value") {
    const std::string text = R"({"a":[1,-2,0.5,1e300,true,false,null,"x\ty","\u00e4"],"b":{},"c":[],"d":{"e":"1"}})";

    CHECK(as_json(text) == JsonDocument("c.json", text).canonical());
}

TEST_CASE("only the core schema's words are no texts: yes, no, on, off, dates and times stay texts") {
    CHECK(as_json("[yes, no, on, off, Y, n, 80GiB, 1:30, 2026-01-02, 1_000, 0b11, 08:00, '5', \"5\", '', =]") ==
          R"(["yes","no","on","off","Y","n","80GiB","1:30","2026-01-02","1_000","0b11","08:00","5","5","","="])");
    CHECK(as_json("[null, Null, NULL, ~, true, True, TRUE, tRUE]") == R"([null,null,null,null,true,true,true,"tRUE"])");
}

TEST_CASE("numbers are the core schema's: 010 is ten, 0o10 and 0x10 have their base") {
    CHECK(as_json("[010, 0o10, 0x10, +7, -7, 1., .5, 1e3, 0o8, 0x, 1e, +, ., 0x-1]") ==
          R"([10,8,16,7,-7,1.0,0.5,1000.0,"0o8","0x","1e","+",".","0x-1"])");
    CHECK(as_json("[9223372036854775807, -9223372036854775808, 18446744073709551615]") ==
          "[9223372036854775807,-9223372036854775808,18446744073709551615]");
    check_refused("a: .inf", "c.yaml:1: '.inf' is no finite number");
    check_refused("a: 1\nb: -.INF", "c.yaml:2: '-.INF' is no finite number");
    check_refused("a: .nan", "c.yaml:1: '.nan' is no finite number");
    check_refused("a: 1e999", "c.yaml:1: '1e999' is no finite number");
}

TEST_CASE("a key that occurs twice is refused with both lines") {
    check_refused("tp: 8\npp: 4\n\ntp: 4\n", "c.yaml:4: the key 'tp' occurs twice, first on line 1");
    check_refused("a: {x: 1,\n  y: 2, x: 3}", "c.yaml:2: the key 'x' occurs twice, first on line 1");
    check_refused("a: 1\n'a': 2", "c.yaml:2: the key 'a' occurs twice, first on line 1");
    CHECK(as_json("- {x: 1}\n- {x: 2}") == R"([{"x":1},{"x":2}])");
}

TEST_CASE("keys must be texts") {
    check_refused("1: x", "c.yaml:1: the key 1 is no text, put it in quotes");
    check_refused("a: b\ntrue: x", "c.yaml:2: the key true is no text, put it in quotes");
    check_refused("~: x", "c.yaml:1: the key null is no text, put it in quotes");
    check_refused("? [a]\n: x", "c.yaml:1: a key is an object or a list, allowed are texts");
    check_refused("a: &b {x: 1}\n*b : 2", "c.yaml:2: a key is an object or a list, allowed are texts");
    CHECK(as_json("no: x\n\"1\": y") == R"({"1":"y","no":"x"})");
}

TEST_CASE("an alias is what its anchor was, and no bomb") {
    CHECK(as_json("a: &x [1, 2]\nb: *x\nc: &y 5\nd: [*y, *x]") == R"({"a":[1,2],"b":[1,2],"c":5,"d":[5,[1,2]]})");
    check_refused("a: &x [1, *x]", "c.yaml:1: an alias stands inside its own anchor");
    const std::string refused = refusal_of("a: *x");
    CHECK(refused.starts_with("c.yaml:1: is not YAML: the referenced anchor is not defined"));
    CHECK(refused.ends_with("(column 4)"));  // yaml-cpp 0.8 says the anchor's name in front of it
    check_refused("a: &x {b: 1}\nc:\n  <<: *x", "c.yaml:3: merge keys ('<<') are not read");

    std::string wide = "- &a0 [" + repeated("x,", 9) + "x]\n", deep = "- &a0 [x]\n";
    for (int i = 1; i < 70; ++i) {
        const std::string alias = fmt::format("*a{},", i - 1);
        wide += fmt::format("- &a{} [{}]\n", i, repeated(alias, 10));
        deep += fmt::format("- &a{} [{}]\n", i, alias);
    }
    check_refused(wide, "c.yaml:5: has more than 100000 values, aliases written out");
    check_refused(deep, "c.yaml:64: is nested deeper than 64 levels");
}

TEST_CASE("nesting, size and the number of documents have limits") {
    CHECK(as_json(repeated("[", 64) + repeated("]", 64)).size() == 128);
    check_refused(repeated("[", 65) + repeated("]", 65), "c.yaml:1: is nested deeper than 64 levels");
    CHECK_THROWS_AS(as_json(std::string(200'000, '[')), Error);
    CHECK_THROWS_AS(as_json(repeated("{a: ", 50'000)), Error);
    CHECK_THROWS_AS(as_json(repeated("- ", 50'000)), Error);
    CHECK_THROWS_AS(as_json(repeated("? ", 50'000)), Error);
    check_refused(std::string(1'048'577, 'x'),
                  "c.yaml: has 1048577 bytes, YAML is read up to 1048576; larger files are JSON");
    check_refused("a: 1\n---\nb: 2\n", "c.yaml:2: a second document begins, only one is read");
    CHECK(as_json("%YAML 1.2\n---\na: 1\n...\n") == R"({"a":1})");
    check_refused("", "c.yaml: is empty");
    check_refused("# nothing\n\n", "c.yaml: is empty");
}

TEST_CASE("what is not YAML, or not ours, is refused with its line") {
    check_refused("a:\n\tb: 1", "c.yaml:2: is indented with a tab, YAML needs spaces");
    check_refused("a:\n  b: 1\n \tc: 1", "c.yaml:3: is indented with a tab, YAML needs spaces");
    check_refused("a: 1\n  b: 2", "c.yaml:2: is not YAML: illegal map value (column 4)");
    check_refused("a: [1, 2\nb: 3", "c.yaml:2: is not YAML: end of sequence flow not found (column 2)");
    check_refused("a: 'x", "c.yaml:1: is not YAML: illegal EOF in scalar (column 6)");
    check_refused("a: !!int 5", "c.yaml:1: the tag 'tag:yaml.org,2002:int' is not read");
    check_refused("a:\n  - !x [1]", "c.yaml:2: the tag '!x' is not read");
    check_refused("a: x\nb: y\x04z", "c.yaml:2: has the control character 0x04");
    check_refused("a: \xff", "c.yaml: is not UTF-8");
    check_refused(std::string_view("a\0b", 3), "c.yaml:1: has the control character 0x00");
}

TEST_CASE("an error of a reader names the line of the value in YAML") {
    const auto document = JsonDocument::yaml("c.yaml", "tp: 8\nranks:\n  - base: 1\n  - base: -1\n    bsae: 2\n");
    const Json second = document.root().at("ranks")[1];

    CHECK_THROWS_WITH_AS(second.at("base").integer(0, 9),
                         "c.yaml:4: ranks[1].base: is -1, must be a whole number from 0 to 9", Error);
    CHECK_THROWS_WITH_AS(second.only_keys({"base"}), "c.yaml:5: ranks[1]: unknown key 'bsae'; did you mean 'base'?",
                         Error);
    CHECK_THROWS_WITH_AS(second.at("tail"), "c.yaml:4: ranks[1]: the key 'tail' is missing", Error);
}

TEST_CASE("a file's name says whether it is YAML") {
    const testing::TemporaryFolder folder("yaml");
    for (const char* name : {"a.yaml", "b.yml", "c.yaml.gz"}) {
        write_files({{folder.path() / name, "a: no"}});
        CHECK(JsonDocument::read(folder.path() / name).canonical() == R"({"a":"no"})");
    }
    write_files({{folder.path() / "d.json", "a: no"}});
    CHECK_THROWS_AS(JsonDocument::read(folder.path() / "d.json"), Error);
}

TEST_CASE("damaged YAML is refused or read, and never worse") {
    const std::string text = "a: &x [1, {b: 'c'}]\nd:\n  - e: \"f\\n\"\n    g: *x\n  - |\n    text\nh: ? i\n";
    const std::string pieces = "&*!|>%@`'\"[]{},:?-#\n\t \\~0x";
    int read = 0;
    for (std::uint64_t n = 0; n < 4000; ++n) {
        Random random(n, 5);
        std::string damaged = text;
        for (std::uint64_t i = 0; i <= random.below(6); ++i) {
            const std::size_t at = random.below(damaged.size());
            if (random.below(3) == 0)
                damaged.erase(at, 1 + random.below(4));
            else
                damaged.insert(at, 1 + random.below(2), pieces[random.below(pieces.size())]);
            if (damaged.empty()) damaged = "x";
        }
        CAPTURE(damaged);
        try {
            static_cast<void>(as_json(damaged));
            ++read;
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
        }
    }
    CHECK(read > 100);
    CHECK(read < 3900);
}
