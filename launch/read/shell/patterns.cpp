#include "launch/read/shell/patterns.hpp"

#include <algorithm>
#include <cstddef>

namespace pipeweaver::launch {

namespace {

constexpr std::ptrdiff_t most_stars = 3;

bool is_plain_pattern(const std::string& pattern, std::string_view others) {
    return pattern.find_first_of(others) == std::string::npos &&
           std::count(pattern.begin(), pattern.end(), '*') <= most_stars;
}

}  // namespace

bool is_like(std::string_view text, std::string_view pattern) {
    if (pattern.empty()) return text.empty();
    if (pattern.front() == '*') {
        for (std::size_t at = 0; at <= text.size(); ++at)
            if (is_like(text.substr(at), pattern.substr(1))) return true;
        return false;
    }
    return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) &&
           is_like(text.substr(1), pattern.substr(1));
}

std::optional<bool> has_pattern(const Word& subject, const Word& pattern) {
    if (!subject.unknown.empty() || subject.uncertain || !pattern.unknown.empty() || pattern.uncertain)
        return std::nullopt;
    if (pattern.quoted) return subject.text == pattern.text;
    if (!is_plain_pattern(pattern.text, "[]()+@!")) return std::nullopt;
    return is_like(subject.text, pattern.text);
}

std::optional<std::string> cut_off(const std::string& text, const std::string& rest) {
    const char mark = rest.front();
    const bool longest = rest.size() > 1 && rest[1] == mark;
    const std::string pattern = rest.substr(longest ? 2 : 1);
    if ((mark != '%' && mark != '#') || !is_plain_pattern(pattern, "[]()+@!$`'\"\\")) return std::nullopt;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const std::size_t size = longest ? text.size() - i : i;  // that is cut off
        const std::size_t from = mark == '%' ? text.size() - size : 0;
        if (is_like(std::string_view(text).substr(from, size), pattern))
            return mark == '%' ? text.substr(0, from) : text.substr(size);
    }
    return text;
}

}  // namespace pipeweaver::launch
