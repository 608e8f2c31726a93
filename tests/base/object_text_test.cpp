#include "pipeweaver/base/object_text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>

using namespace pipeweaver;

TEST_CASE("objects written as text are what the library writes, in the order given and sorted") {
    const std::vector<std::string> texts{
        "", "plain", "a \"quoted\" word", "back\\slash", "new\nline\ttab", "\x01\x1f", "gr\u00fc\u00df", "\x7f"};
    for (const std::string& text : texts) {
        CAPTURE(text);
        ObjectText json;
        json.integer("z", std::numeric_limits<std::int64_t>::min()).text("kind", text).flag("b", true);
        json.number("half", 0.1).number("one", 1.0).raw("a", "[1,2]").integer("n", std::uint64_t{7});
        nlohmann::ordered_json expected{{"z", std::numeric_limits<std::int64_t>::min()}, {"kind", text}, {"b", true}};
        expected["half"] = 0.1;
        expected["one"] = 1.0;
        expected["a"] = {1, 2};
        expected["n"] = 7;
        std::string as_added, sorted;
        json.append_to(as_added);
        json.append_sorted_to(sorted);
        CHECK(as_added == expected.dump());
        CHECK(sorted == nlohmann::json(expected).dump());
        CHECK(json_text(text) == nlohmann::json(text).dump());
        json.clear();
        as_added.clear();
        json.append_to(as_added);
        CHECK(as_added == "{}");
    }
}
