#include "pipeweaver/base/option_values.hpp"

#include <algorithm>

namespace pipeweaver {

std::string quoted_for_shell(std::string_view text) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+%@-";
    if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string(text);
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    }
    quoted += '\'';
    return quoted;
}

void OptionValues::set(std::string_view name, std::string text) {
    erase(name);
    values_.push_back({std::string(name), std::move(text)});
}

void OptionValues::set_flag(std::string_view name) {
    erase(name);
    values_.push_back({std::string(name), {}, true});
}

void OptionValues::erase(std::string_view name) {
    std::erase_if(values_, [&](const Value& value) { return value.name == name; });
}

void OptionValues::add(const OptionValues& more) {
    for (const Value& value : more.values_) {
        erase(value.name);
        values_.push_back(value);
    }
}

const OptionValues::Value* OptionValues::find(std::string_view name) const {
    const auto found =
        std::find_if(values_.begin(), values_.end(), [&](const Value& value) { return value.name == name; });
    return found == values_.end() ? nullptr : &*found;
}

std::string OptionValues::command(std::string_view program) const {
    std::string line(program);
    for (const auto& [name, text, flag] : values_) {
        line.append(" --").append(name);
        if (!flag) line.append(text.starts_with('-') ? "=" : " ").append(quoted_for_shell(text));
    }
    return line;
}

}  // namespace pipeweaver
