#include "pipeweaver/base/options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace pipeweaver {

namespace {

template <class Number, class... Format>
std::optional<Number> number_of(std::string_view text, Number low, Number high, Format... format) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, format...);
    const bool read = error == std::errc{} && end == text.data() + text.size();
    return read && value >= low && value <= high ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> integer_in(std::string_view text, std::int64_t low, std::int64_t high) {
    return number_of(text, low, high);
}

std::optional<double> number_in(std::string_view text, double low, double high) {
    return number_of(text, low, high, std::chars_format::fixed);
}

std::int64_t parse_integer(std::string_view name, std::string_view text, std::int64_t low, std::int64_t high) {
    if (const auto value = integer_in(text, low, high)) return *value;
    fail(ErrorKind::input, "{}: {}", name, must_be(text, a_whole_number(low, high)));
}

std::vector<std::string> parts_of(std::string_view text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        parts.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::vector<std::int64_t> parse_integers(std::string_view name, std::string_view text, std::int64_t low,
                                         std::int64_t high, std::size_t most) {
    std::vector<std::int64_t> all;
    for (const std::string& part : parts_of(text)) {
        const std::size_t dash = part.find('-');
        const std::int64_t first = parse_integer(name, part.substr(0, dash), low, high);
        const std::int64_t last =
            dash == std::string::npos ? first : parse_integer(name, part.substr(dash + 1), low, high);
        if (last < first || static_cast<std::size_t>(last - first) >= most - std::min(most, all.size()))
            fail(ErrorKind::input, "{}: '{}' is not 1 to {} numbers, the smaller first, like 101-105", name, part,
                 most);
        for (std::int64_t one = first; one <= last; ++one) all.push_back(one);
    }
    return all;
}

double parse_number(std::string_view name, std::string_view text, double low, double high) {
    if (const auto value = number_in(text, low, high)) return *value;
    fail(ErrorKind::input, "{}: {}", name, must_be(text, a_number(low, high)));
}

std::string text_of(double value) {
    std::array<char, 400> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
    return {text.data(), end};
}

void require_given(const std::vector<Needed>& all) {
    std::string missing;
    for (const Needed& one : all)
        if (!one.given) missing += fmt::format("{}{}: {}", missing.empty() ? "" : "; ", one.option, one.what);
    if (!missing.empty()) fail(ErrorKind::input, "missing {}", missing);
}

void fail_missing(std::string_view option, std::string_view what) {
    fail(ErrorKind::input, "missing {}: {}", option, what);
}

void OptionTable::add(Entry entry) {
    entry.group = group_;
    entries_.push_back(std::move(entry));
    added(entries_.back());
}

namespace {

std::optional<std::string> said(const std::string& value) { return value; }
std::optional<std::string> said(double value) { return text_of(value); }
std::optional<std::string> said(std::int64_t value) { return std::to_string(value); }
std::optional<std::string> said(const std::optional<std::int64_t>& value) {
    return value ? said(*value) : std::nullopt;
}

template <class Value>
std::function<std::optional<std::string>()> unless_as_now(const Value& value) {
    return [&value, now = value] { return value == now ? std::nullopt : said(value); };
}

}  // namespace

void OptionTable::text(const std::string& name, std::string& value, const std::string& kind, const std::string& about) {
    parsed(
        name, kind, about, [&value](const std::string& given) { value = given; }, unless_as_now(value));
}

void OptionTable::choice(const std::string& name, std::string& value, const std::vector<std::string>& allowed,
                         const std::string& about) {
    parsed(
        name, fmt::format("{}", fmt::join(allowed, "|")), about,
        [=, &value](const std::string& given) {
            if (std::find(allowed.begin(), allowed.end(), given) == allowed.end())
                fail(ErrorKind::input, "--{}: {}", name, must_be(given, one_of(allowed)));
            value = given;
        },
        unless_as_now(value));
}

void OptionTable::integer(const std::string& name, std::int64_t& value, std::int64_t low, std::int64_t high,
                          const std::string& about) {
    parsed(
        name, "N", about,
        [=, &value](const std::string& given) { value = parse_integer("--" + name, given, low, high); },
        unless_as_now(value));
}

void OptionTable::integer(const std::string& name, std::optional<std::int64_t>& value, std::int64_t low,
                          std::int64_t high, const std::string& about) {
    parsed(
        name, "N", about,
        [=, &value](const std::string& given) { value = parse_integer("--" + name, given, low, high); },
        unless_as_now(value));
}

void OptionTable::number(const std::string& name, double& value, double low, double high, const std::string& about) {
    parsed(
        name, "X", about,
        [=, &value](const std::string& given) { value = parse_number("--" + name, given, low, high); },
        unless_as_now(value));
}

void OptionTable::flag(const std::string& name, bool& value, const std::string& about) {
    add({{}, name, {}, about, {}, {}, &value});
}

void OptionTable::parsed(const std::string& name, const std::string& kind, const std::string& about,
                         std::function<void(const std::string&)> set, std::function<std::optional<std::string>()> say) {
    add({{}, name, kind, about, std::move(set), std::move(say), nullptr});
}

void OptionTable::also_as(const std::string& key, std::function<std::string(const Json&)> text_of) {
    entries_.back().key = key;
    entries_.back().text_of_key = std::move(text_of);
}

OptionValues OptionTable::values() const {
    OptionValues values;
    for (const Entry& entry : entries_) {
        if (entry.flag != nullptr) {
            if (*entry.flag) values.set_flag(entry.name);
        } else if (auto text = entry.say ? entry.say() : std::nullopt) {
            values.set(entry.name, std::move(*text));
        }
    }
    return values;
}

namespace {

void set_text(const OptionTable::Entry& entry, const Json& value, const std::string& text) {
    try {
        entry.set(text);
    } catch (const Error& error) {
        std::string_view message = error.what();
        const std::string name = fmt::format("--{}: ", entry.name);
        if (message.starts_with(name)) message.remove_prefix(name.size());
        value.fail(message);
    }
}

void set_from(const OptionTable::Entry& entry, const Json& value) {
    if (entry.flag != nullptr) {
        *entry.flag = value.boolean();
        return;
    }
    if (!value.is_string() && !value.raw().is_number()) value.fail("is neither a text nor a number");
    set_text(entry, value, value.is_string() ? value.text() : value.raw().dump());
}

}  // namespace

void OptionTable::configure(const Json& configuration, const std::function<bool(std::size_t)>& skip) const {
    std::vector<std::string> names;
    names.reserve(entries_.size());
    for (const Entry& entry : entries_) {
        names.push_back(entry.name);
        if (!entry.key.empty()) names.push_back(entry.key);
    }
    configuration.only_keys(names);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const Entry& entry = entries_[i];
        if (skip && skip(i)) continue;
        const auto value = configuration.find(entry.name);
        if (value) set_from(entry, *value);
        if (const auto object = entry.key.empty() ? std::nullopt : configuration.find(entry.key)) {
            if (value) object->fail(fmt::format("says the same as '{}'; allowed is one of the two", entry.name));
            set_text(entry, *object, entry.text_of_key(*object));
        }
    }
}

}  // namespace pipeweaver
