#include "pipeweaver/emulator/what_if.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/support/small_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

const Layout layout{.tp = 2, .pp = 4, .dp = 2};

WhatIf parsed(const std::string& text) {
    return parse_what_if(JsonDocument("w.json", R"({"format":"pipeweaver-what-if/1")" + text + "}"),
                         testing::small_model(), layout);
}

void check_refused(const std::string& text, const char* message) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parsed(text), message, Error);
}

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TEST_CASE("factors are read as they stand in the file") {
    const WhatIf read = parsed(R"(,"devices":[{"rank":3,"replica":1,"factor":1.1},{"rank":0,"factor":2}],
        "links":{"tensor":0.5,"pipeline":1},"operators":{"attention":0.5,"qkv":0.25},"modules":{"vit":0.8})");

    CHECK(read == WhatIf{.devices = {{3, 1, 1.1}, {0, {}, 2}},
                         .links = {{"tensor", 0.5}, {"pipeline", 1}},
                         .operators = {{"attention", 0.5}, {"qkv", 0.25}},
                         .modules = {{"vit", 0.8}}});
    CHECK(!read.empty());
}

TEST_CASE("a file without factors changes nothing, and YAML says the same as JSON") {
    CHECK(parsed("").empty());
    const auto yaml = JsonDocument::yaml("w.yaml", "format: pipeweaver-what-if/1\nmodules:\n  llm: 0.5\n");
    CHECK(parse_what_if(yaml, testing::small_model(), layout) == parsed(R"(,"modules":{"llm":0.5})"));
}

TEST_CASE("what the model and the layout do not have is refused by name") {
    check_refused(R"(,"device":[])", "w.json: unknown key 'device'; did you mean 'devices'?");
    check_refused(R"(,"links":{"tensr":1})", "w.json: links: unknown key 'tensr'; did you mean 'tensor'?");
    check_refused(R"(,"modules":{"vits":1})", "w.json: modules: unknown key 'vits'; did you mean 'vit'?");
    check_refused(R"(,"operators":{"atention":1})",
                  "w.json: operators: unknown key 'atention'; did you mean 'attention'?");
    check_refused(R"(,"operators":{"cross query":1})",
                  "w.json: operators: unknown key 'cross query'; did you mean 'cross entropy'?");
    check_refused(R"(,"devices":[{"rank":4,"factor":1}])",
                  "w.json: devices[0].rank: is 4, must be a whole number from 0 to 3");
    check_refused(R"(,"devices":[{"rank":0,"replica":2,"factor":1}])",
                  "w.json: devices[0].replica: is 2, must be a whole number from 0 to 1");
    check_refused(R"(,"devices":[{"rank":0}])", "w.json: devices[0]: the key 'factor' is missing");
}

TEST_CASE("a factor is above 0 and at most 1000") {
    check_refused(R"(,"modules":{"vit":0})", "w.json: modules.vit: is 0, must be a number above 0 up to 1000");
    check_refused(R"(,"modules":{"vit":-1})", "w.json: modules.vit: is -1, must be a number from 0 to 1000");
    check_refused(R"(,"links":{"data":1000.5})", "w.json: links.data: is 1000.5, must be a number from 0 to 1000");
    check_refused(R"(,"links":{"data":"fast"})", "w.json: links.data: is \"fast\", must be a number from 0 to 1000");
    CHECK(parsed(R"(,"links":{"data":1000})").links.at("data") == 1000);
}

TEST_CASE("factors that may meet are at most 1000 together") {
    check_refused(R"(,"devices":[{"rank":1,"factor":40},{"rank":1,"replica":0,"factor":40}])",
                  "w.json: the largest factors that may meet are 1600 together, allowed is up to 1000");
    check_refused(R"(,"links":{"tensor":2},"operators":{"gemm":3,"qkv":5,"up":4},"modules":{"llm":40})",
                  "w.json: the largest factors that may meet are 1200 together, allowed is up to 1000");
    CHECK(!parsed(R"(,"devices":[{"rank":1,"factor":40},{"rank":2,"factor":40}],"modules":{"llm":0.001,"vit":25})")
               .empty());
    CHECK(!parsed(R"(,"links":{"tensor":0.5},"modules":{"llm":1000})").empty());
}

TEST_CASE("operators have the names of what a step launches in its layout") {
    const auto names = operator_names(testing::small_model(), layout);
    for (const char* name : {"gemm", "attention", "qkv", "down", "gather for weights", "embedding", "cross entropy",
                             "projector", "reduce gradients", "optimizer"})
        CHECK_MESSAGE(has(names, name), name);
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());

    const auto alone = operator_names(testing::small_model(), {.tp = 1, .pp = 4, .dp = 1});
    for (const char* name : {"gather", "scatter", "reduce gradients"}) CHECK_MESSAGE(!has(alone, name), name);
}
