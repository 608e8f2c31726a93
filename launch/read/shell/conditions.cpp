#include "launch/read/shell/conditions.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pipeweaver::launch {

namespace {

using Truth = std::optional<bool>;

// How many words stand in front of a condition.
std::size_t leading(const std::vector<Word>& words) {
    constexpr std::array<std::string_view, 4> leads{"if", "elif", "while", "{"};
    const auto end = std::find_if(words.begin(), words.end(), [&](const Word& word) {
        return std::find(leads.begin(), leads.end(), word.text) == leads.end();
    });
    return static_cast<std::size_t>(end - words.begin());
}

// The words between the brackets; none where there are no brackets.
std::vector<Word> inside(const std::vector<Word>& words) {
    const std::size_t begin = leading(words);
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

// Without "&&" and "||".
Truth of_test(std::span<const Word> said) {
    bool negated = false;
    while (said.size() > 1 && said.front().text == "!") {
        negated = !negated;
        said = said.subspan(1);
    }
    const bool known =
        std::all_of(said.begin(), said.end(), [](const Word& word) { return word.unknown.empty() && !word.uncertain; });
    if (said.empty() || !known) return std::nullopt;
    Truth truth;
    if (said.size() == 1) truth = !said.front().text.empty();
    if (said.size() == 2) truth = of_one(said[0].text, said[1]);
    if (said.size() == 3) truth = of_two(said[0], said[1].text, said[2]);
    return truth ? Truth(*truth != negated) : truth;
}

bool is_between(const Word& word, bool any) {
    return !word.quoted && (any ? word.text == "||" || word.text == "-o" : word.text == "&&" || word.text == "-a");
}

// Parts between "||", or between "&&": one that is known may decide, whatever the others are.
Truth of_list(std::span<const Word> words, bool any) {
    Truth truth = !any;
    bool decided = false;
    for (std::size_t begin = 0, end = 0; begin <= words.size(); begin = end + 1) {
        end = begin;
        while (end < words.size() && !is_between(words[end], any)) ++end;
        if (end == begin) return std::nullopt;
        const auto part = words.subspan(begin, end - begin);
        const Truth one = any ? of_list(part, false) : of_test(part);
        decided = decided || one == any;
        if (!one) truth.reset();
    }
    return decided ? Truth(any) : truth;
}

bool is_bracket(const Word& word) { return !word.quoted && (word.text == "(" || word.text == ")"); }

// The same words without "!" in front, and whether that turns what they say.
std::pair<std::vector<Word>, bool> without_not(std::vector<Word> words) {
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(leading(words));
    const auto end = std::find_if(begin, words.end(), [](const Word& word) { return word.text != "!"; });
    const bool negated = (end - begin) % 2 != 0;
    words.erase(begin, end);
    return {std::move(words), negated};
}

// Of commands that never fail, or always.
Truth truth_of_builtin(const std::vector<Word>& words) {
    const std::size_t begin = leading(words);
    if (begin >= words.size()) return std::nullopt;
    const std::string& name = words[begin].text;
    constexpr std::array<std::string_view, 4> never_fail{":", "true", "echo", "unset"};
    if (std::find(never_fail.begin(), never_fail.end(), name) != never_fail.end()) return true;
    return name == "false" ? Truth(false) : std::nullopt;
}

}  // namespace

std::optional<bool> condition_of(const std::vector<Word>& words) {
    const auto [bare, negated] = without_not(words);
    const std::vector<Word> said = inside(bare);
    if (said.empty() || std::any_of(said.begin(), said.end(), is_bracket)) return std::nullopt;
    const Truth truth = of_list(said, true);
    return truth ? Truth(*truth != negated) : truth;
}

Holds holds(const std::vector<Word>& words) {
    if (const auto truth = condition_of(words)) return *truth ? Holds::always : Holds::never;
    const auto [bare, negated] = without_not(words);
    if (const auto truth = truth_of_builtin(bare)) return *truth != negated ? Holds::always : Holds::never;
    return inside(bare).empty() ? Holds::probably : Holds::perhaps;
}

std::string asked_of(const std::vector<Word>& words, std::string_view how) {
    const std::vector<Word> said = inside(words);
    const bool is_asked = said.size() == 2 && said[0].text == how && said[1].unknown == said[1].text;
    return is_asked ? said[1].text : std::string();
}

}  // namespace pipeweaver::launch
