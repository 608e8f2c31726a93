#include "apps/options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace pipeweaver::apps {

std::int64_t parse_integer(std::string_view name, std::string_view text, std::int64_t low, std::int64_t high) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
        fail(ErrorKind::input, "{}: is '{}', allowed are whole numbers from {} to {}", name, text, low, high);
    return value;
}

CLI::Option* add_operand(CLI::App& app, const std::string& name, std::string& value, const std::string& kind,
                         const std::string& about) {
    return app.add_option(name, value, about)->type_name(kind)->group("Operands");
}

void Options::text(const std::string& name, std::string& value, const std::string& kind, const std::string& about) {
    parsed(name, kind, about, [&value](const std::string& given) { value = given; });
}

void Options::choice(const std::string& name, std::string& value, const std::vector<std::string>& allowed,
                     const std::string& about) {
    parsed(name, fmt::format("{}", fmt::join(allowed, "|")), about, [=, &value](const std::string& given) {
        if (std::find(allowed.begin(), allowed.end(), given) == allowed.end())
            fail(ErrorKind::input, "--{}: is '{}', allowed {} {}", name, given, allowed.size() == 1 ? "is" : "are",
                 fmt::join(allowed, ", "));
        value = given;
    });
}

void Options::integer(const std::string& name, std::int64_t& value, std::int64_t low, std::int64_t high,
                      const std::string& about) {
    parsed(name, "N", about,
           [=, &value](const std::string& given) { value = parse_integer("--" + name, given, low, high); });
}

void Options::integer(const std::string& name, std::optional<std::int64_t>& value, std::int64_t low, std::int64_t high,
                      const std::string& about) {
    parsed(name, "N", about,
           [=, &value](const std::string& given) { value = parse_integer("--" + name, given, low, high); });
}

void Options::flag(const std::string& name, bool& value, const std::string& about) {
    entries_.push_back({name, app_->add_flag("--" + name, about)->group(group_), {}, &value});
}

void Options::parsed(const std::string& name, const std::string& kind, const std::string& about,
                     std::function<void(const std::string&)> set) {
    // The value stays with CLI11 until apply(): a configuration file may be named behind the option it sets.
    auto* option = app_->add_option("--" + name, about)->expected(1)->type_name(kind)->group(group_);
    entries_.push_back({name, option, std::move(set), nullptr});
}

void Options::with_configuration() {
    configuration_ =
        app_->add_option("--config", "a YAML or JSON file with these options as keys; the command line wins")
            ->expected(1)
            ->type_name("FILE")
            ->group(group_);
}

void Options::apply() const {
    std::optional<JsonDocument> configuration;
    if (configuration_ != nullptr && configuration_->count() > 0) {
        configuration = JsonDocument::read(configuration_->as<std::string>());
        std::vector<std::string> names;
        for (const Entry& entry : entries_) names.push_back(entry.name);
        configuration->root().only_keys(names);
    }
    for (const Entry& entry : entries_) {
        if (entry.option->count() > 0)
            set_from_command_line(entry);
        else if (const auto value = configuration ? configuration->root().find(entry.name) : std::nullopt)
            set_from_configuration(entry, *value);
    }
}

void Options::set_from_command_line(const Entry& entry) {
    if (entry.flag != nullptr) {
        *entry.flag = entry.option->as<bool>();
        return;
    }
    try {
        entry.set(entry.option->as<std::string>());
    } catch (const Error& error) {
        const std::string name = "--" + entry.name;
        throw std::string_view(error.what()).starts_with(name) ? error : error.in(name);
    }
}

void Options::set_from_configuration(const Entry& entry, const Json& value) {
    if (entry.flag != nullptr) {
        *entry.flag = value.boolean();
        return;
    }
    if (!value.is_string() && !value.is_integer()) value.fail("is neither a text nor a whole number");
    try {
        entry.set(value.is_string() ? value.text() : value.raw().dump());
    } catch (const Error& error) {
        std::string_view message = error.what();
        const std::string name = fmt::format("--{}: ", entry.name);
        if (message.starts_with(name)) message.remove_prefix(name.size());
        value.fail(message);
    }
}

}  // namespace pipeweaver::apps
