#include "apps/options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <charconv>

namespace pipeweaver::apps {

std::int64_t parse_integer(std::string_view name, std::string_view text, std::int64_t low, std::int64_t high) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
        fail(ErrorKind::input, "{}: is '{}', allowed are whole numbers from {} to {}", name, text, low, high);
    return value;
}

void Options::text(const std::string& name, std::string& value, const std::string& about) {
    parsed(name, about, [&value](const std::string& given) { value = given; });
}

void Options::integer(const std::string& name, std::int64_t& value, std::int64_t low, std::int64_t high,
                      const std::string& about) {
    parsed(name, about,
           [=, &value](const std::string& given) { value = parse_integer("--" + name, given, low, high); });
}

void Options::integer(const std::string& name, std::optional<std::int64_t>& value, std::int64_t low, std::int64_t high,
                      const std::string& about) {
    parsed(name, about,
           [=, &value](const std::string& given) { value = parse_integer("--" + name, given, low, high); });
}

void Options::parsed(const std::string& name, const std::string& about, std::function<void(const std::string&)> set) {
    // The value stays with CLI11 until apply(): a configuration file may be named behind the option it sets.
    auto* option = app_->add_option("--" + name, about)->expected(1)->type_name("");
    entries_.push_back({name, option, std::move(set)});
}

void Options::with_configuration() {
    configuration_ = app_->add_option("--config", "a JSON file with these options as keys; the command line wins")
                         ->expected(1)
                         ->type_name("FILE");
}

void Options::apply() const {
    std::map<std::string, std::string> configured;
    if (configuration_ != nullptr && configuration_->count() > 0) {
        const auto document = JsonDocument::read(configuration_->as<std::string>());
        std::vector<std::string> names;
        for (const Entry& entry : entries_) names.push_back(entry.name);
        for (const auto& [key, value] : document.root().members()) {
            if (std::find(names.begin(), names.end(), key) == names.end())
                fail(ErrorKind::input, "{}: {}", document.name(), unknown("key", key, names));
            if (!value.is_string() && !value.is_integer()) value.fail("is neither a text nor a whole number");
            configured[key] = value.is_string() ? value.text() : value.raw().dump();
        }
    }
    for (const Entry& entry : entries_) {
        const auto place = configured.find(entry.name);
        if (entry.option->count() == 0 && place == configured.end()) continue;
        const std::string given = entry.option->count() > 0 ? entry.option->as<std::string>() : place->second;
        try {
            entry.set(given);
        } catch (const Error& error) {
            const std::string name = "--" + entry.name;
            throw std::string_view(error.what()).starts_with(name) ? error : error.in(name);
        }
    }
}

}  // namespace pipeweaver::apps
