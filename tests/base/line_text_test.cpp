// Text of unknown origin as one printable line.
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/utf8.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;

TEST_CASE("what cannot be printed, hides or turns text is written out") {
    CHECK(printable("plain, ü €, 𝄞") == "plain, ü €, 𝄞");
    CHECK(printable("a\x1b[31mb\tc\x7f") == "a\\x1b[31mb\\x09c\\x7f");
    CHECK(printable(std::string("\0", 1)) == "\\x00");
    CHECK(printable("\x80\xffz") == "\\x80\\xffz");
    CHECK(printable("\xc2\x85") == "\\xc2\\x85");                                      // next line
    CHECK(printable("\xe2\x80\xae\xe2\x80\xa8") == "\\xe2\\x80\\xae\\xe2\\x80\\xa8");  // turned text, line separator
    CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                                      // too long a form of '/'
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");                             // half a surrogate pair
    CHECK(printable("\xe2\x82") == "\\xe2\\x82");                                      // cut short
    CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");                    // beyond Unicode
}

TEST_CASE("text is UTF-8 or not") {
    CHECK(is_utf8(""));
    CHECK(is_utf8("plain\n, ü €, 𝄞\xc2\x85"));
    for (const char* bad : {"\x80", "a\xffz", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82", "\xf4\x90\x80\x80"})
        CHECK_FALSE(is_utf8(bad));
}

TEST_CASE("words and quoted values are cut after 80 characters, lines after 400, ways of files not at all") {
    const std::string n100(100, 'n'), n80(80, 'n');
    CHECK(as_line("a\nb") == "a b");
    CHECK(as_line("key " + n80) == "key " + n80);
    CHECK(as_line("key " + n100 + ": wrong") == "key " + n80 + "… wrong");
    CHECK(as_line("is 'a " + n100 + "', allowed") == "is 'a " + std::string(77, 'n') + "…', allowed");
    CHECK(as_line("it's: " + n100) == "it's: " + n80 + "…");
    CHECK(as_line("/tmp/" + n100 + ": cannot") == "/tmp/" + n100 + ": cannot");
    CHECK(as_line("is '/tmp/" + n100 + "'") == "is '/tmp/" + n100 + "'");
    std::string wide;
    for (int i = 0; i < 500; ++i) wide += i % 10 == 9 ? " " : "ü";
    const std::string line = as_line(wide);
    CHECK(line.starts_with(wide.substr(0, 380)));
    CHECK(line.ends_with(wide.substr(wide.size() - 300)));
    CHECK(line.size() == wide.size() - 101 * 2 + 10 + std::string("…").size());
    CHECK(as_line(std::string(399, ' ') + "x").size() == 400);
    CHECK(as_line(std::string(400, ' ') + "x").size() == 399 + std::string("…").size());
}
