#include "pipeweaver/base/embedded.hpp"
#include "pipeweaver/frameworks/recipe.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

// Set in embedded.S.
extern "C" {
extern const char pipeweaver_frameworks_bridge[], pipeweaver_frameworks_bridge_end[];
extern const char pipeweaver_frameworks_titan[], pipeweaver_frameworks_titan_end[];
extern const char pipeweaver_frameworks_titan_toml[], pipeweaver_frameworks_titan_toml_end[];
}

namespace pipeweaver::frameworks {

namespace {

std::vector<std::string_view> tables_of(Dialect dialect) {
    if (dialect == Dialect::bridge_overrides)
        return {embedded_text(pipeweaver_frameworks_bridge, pipeweaver_frameworks_bridge_end)};
    if (dialect == Dialect::titan_settings)
        return {embedded_text(pipeweaver_frameworks_titan, pipeweaver_frameworks_titan_end),
                embedded_text(pipeweaver_frameworks_titan_toml, pipeweaver_frameworks_titan_toml_end)};
    return {};
}

// What stands before the next `end`, which is taken off, too.
std::string_view taken(std::string_view& text, char end) {
    const std::size_t at = std::min(text.find(end), text.size());
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(std::min(at + 1, text.size()));
    return part;
}

std::vector<std::string_view> parts(std::string_view text, char between) {
    std::vector<std::string_view> all;
    while (!text.empty()) all.push_back(taken(text, between));
    return all;
}

// "12=8;..." with the names of the table's second line.
Recipe recipe_of(std::string_view package, const std::vector<std::string_view>& names, std::string_view line) {
    Recipe recipe{package, taken(line, ';'), {}};
    for (std::string_view said : parts(line, ';')) {
        const std::string_view number = taken(said, '=');
        std::size_t name = 0;
        std::from_chars(number.data(), number.data() + number.size(), name);
        recipe.settings.emplace_back(names.at(name), said);
    }
    return recipe;
}

}  // namespace

std::optional<Recipe> recipe_called(Dialect dialect, std::string_view name) {
    for (std::string_view table : tables_of(dialect)) {
        const std::string_view package = taken(table, '\n');
        const auto settings = parts(taken(table, '\n'), ' ');
        while (!table.empty()) {
            std::string_view line = taken(table, '\n');
            const auto names = parts(taken(line, ';'), ' ');
            if (std::find(names.begin(), names.end(), name) != names.end()) return recipe_of(package, settings, line);
        }
    }
    return std::nullopt;
}

std::vector<std::string_view> recipe_names(Dialect dialect) {
    std::vector<std::string_view> all;
    for (std::string_view table : tables_of(dialect)) {
        taken(table, '\n');
        taken(table, '\n');
        while (!table.empty()) {
            std::string_view line = taken(table, '\n');
            const auto names = parts(taken(line, ';'), ' ');
            all.insert(all.end(), names.begin(), names.end());
        }
    }
    return all;
}

}  // namespace pipeweaver::frameworks
