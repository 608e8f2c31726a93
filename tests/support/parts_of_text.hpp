// What tests look for in pages.
#pragma once

#include <doctest/doctest.h>

#include <string>

namespace pipeweaver::testing {

/// How often `part` stands in the text, without overlaps.
inline std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
    return found;
}

/// From `open`, which must be there, to the next `close`.
inline std::string between(const std::string& text, const std::string& open, const std::string& close) {
    const auto from = text.find(open);
    REQUIRE(from != std::string::npos);
    return text.substr(from, text.find(close, from) - from);
}

}  // namespace pipeweaver::testing
