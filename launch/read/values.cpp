#include "launch/read/values.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <cctype>

namespace pipeweaver::launch {

namespace {

constexpr std::int64_t largest_value = 1'000'000'000;

std::string place_of(const Setting& setting) { return setting.where + ": " + setting.name; }

bool is_of_a_word(char c) {
    return std::isspace(static_cast<unsigned char>(c)) == 0 && c != ',' && c != '"' && c != '\'';
}

std::vector<std::string> names_in(std::string_view text) {
    std::vector<std::string> names(1);
    for (const char c : text) {
        if (is_of_a_word(c))
            names.back() += c;
        else if (!names.back().empty())
            names.emplace_back();
    }
    if (names.back().empty()) names.pop_back();
    return names;
}

const std::string& only_value(const Setting& setting) {
    if (setting.values.size() == 1) return setting.values.front();
    fail(ErrorKind::input, "{}: has {} values, allowed is one", place_of(setting), setting.values.size());
}

}  // namespace

std::int64_t integer_of(const Setting& setting, std::int64_t least) {
    return parse_integer(place_of(setting), only_value(setting), least, largest_value);
}

bool boolean_of(const Setting& setting) {
    if (setting.values.empty()) return true;
    const std::string& text = only_value(setting);
    if (text == "true" || text == "True" || text == "1") return true;
    if (text == "false" || text == "False" || text == "0") return false;
    fail(ErrorKind::input, "{}: {}", place_of(setting), must_be(text, "true or false"));
}

std::string text_of(const Setting& setting, std::string_view choices) {
    const std::string& text = only_value(setting);
    if (choices.empty()) return text;
    for (std::size_t at = 0; at <= choices.size();) {
        const std::size_t end = std::min(choices.find('|', at), choices.size());
        if (choices.substr(at, end - at) == text) return text;
        at = end + 1;
    }
    std::string allowed(choices);
    for (std::size_t at = 0; (at = allowed.find('|', at)) != std::string::npos;) allowed.replace(at, 1, ", ");
    fail(ErrorKind::input, "{}: {}", place_of(setting), must_be(text, "one of " + allowed));
}

std::vector<std::string> texts_of(const Setting& setting) {
    if (setting.values.empty()) fail(ErrorKind::input, "{}: has no value", place_of(setting));
    if (setting.values.size() > 1) return setting.values;
    std::string_view text = setting.values.front();
    if (text.size() > 1 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
    return names_in(text);
}

std::vector<std::vector<std::string>> parted_lists_of(const Setting& setting) {
    if (setting.values.empty()) fail(ErrorKind::input, "{}: has no value", place_of(setting));
    std::vector<std::vector<std::string>> lists;
    lists.reserve(setting.values.size());
    for (const std::string& value : setting.values) lists.push_back(parts_of(value));
    return lists;
}

bool is_null(const Setting& setting) {
    return setting.values.size() == 1 && (setting.values.front() == "null" || setting.values.front() == "None");
}

std::optional<std::vector<std::vector<std::string>>> lists_of(const std::string& text) {
    std::vector<std::vector<std::string>> lists;
    std::size_t depth = 0;
    std::string inside;
    for (const char c : text) {
        if (c == '[') {
            if (++depth > 2) return std::nullopt;
            inside.clear();
        } else if (c == ']') {
            if (depth == 0) return std::nullopt;
            if (depth-- == 2) lists.push_back(names_in(inside));
            inside.clear();
        } else if (depth == 2) {
            inside += c;
        } else if (depth == 0 || is_of_a_word(c)) {
            if (is_of_a_word(c)) return std::nullopt;
        }
    }
    if (depth != 0 || lists.empty()) return std::nullopt;
    return lists;
}

}  // namespace pipeweaver::launch
