#include "launch/read/shell/conditions.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace pipeweaver::launch {

namespace {

using Truth = std::optional<bool>;

// The words between the brackets; none where there are no brackets.
std::vector<Word> inside(const std::vector<Word>& words) {
    std::size_t begin = 0;
    if (!words.empty() && (words[0].text == "if" || words[0].text == "elif" || words[0].text == "while")) ++begin;
    if (begin >= words.size()) return {};
    const std::string& open = words[begin].text;
    if (open == "test") return {words.begin() + static_cast<std::ptrdiff_t>(begin) + 1, words.end()};
    const std::string close = open == "[" ? "]" : open == "[[" ? "]]" : "";
    if (close.empty() || words.back().text != close) return {};
    return {words.begin() + static_cast<std::ptrdiff_t>(begin) + 1, words.end() - 1};
}

Truth of_one(const std::string& how, const Word& what) {
    if (how == "-n") return !what.text.empty();
    if (how == "-z") return what.text.empty();
    return std::nullopt;
}

Truth of_numbers(const std::string& a, const std::string& how, const std::string& b) {
    const auto number = [](const std::string& text) -> std::optional<std::int64_t> {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
    };
    const auto x = number(a), y = number(b);
    if (!x || !y) return std::nullopt;
    if (how == "-eq") return *x == *y;
    if (how == "-ne") return *x != *y;
    if (how == "-gt") return *x > *y;
    if (how == "-ge") return *x >= *y;
    if (how == "-lt") return *x < *y;
    if (how == "-le") return *x <= *y;
    return std::nullopt;
}

Truth of_two(const Word& a, const std::string& how, const Word& b) {
    const bool equal = how == "=" || how == "==";
    if (!equal && how != "!=") return of_numbers(a.text, how, b.text);
    if (!b.quoted && b.text.find_first_of("*?[") != std::string::npos) return std::nullopt;
    return (a.text == b.text) == equal;
}

}  // namespace

std::optional<bool> condition_of(const std::vector<Word>& words) {
    std::vector<Word> said = inside(words);
    const bool known =
        std::all_of(said.begin(), said.end(), [](const Word& word) { return word.unknown.empty() && !word.uncertain; });
    if (said.empty() || !known) return std::nullopt;
    bool negated = false;
    while (said.size() > 1 && said.front().text == "!") {
        negated = !negated;
        said.erase(said.begin());
    }
    Truth truth;
    if (said.size() == 1) truth = !said.front().text.empty();
    if (said.size() == 2) truth = of_one(said[0].text, said[1]);
    if (said.size() == 3) truth = of_two(said[0], said[1].text, said[2]);
    return truth ? Truth(*truth != negated) : truth;
}

}  // namespace pipeweaver::launch
