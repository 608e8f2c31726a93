#include "service/ui/forms.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace pipeweaver::service {

using nlohmann::ordered_json;

namespace {

// Set for all, or of another machine: what is asked here stays here.
constexpr std::array<std::string_view, 12> set_here{
    "out",  "json",     "quiet",  "config",       "progress-every",   "progress-json",
    "help", "help-all", "server", "server-token", "server-authority", "served"};

}  // namespace

bool is_set_here(std::string_view name) { return std::find(set_here.begin(), set_here.end(), name) != set_here.end(); }

ordered_json forms_json(const std::vector<UiCommand>& asked, const std::string& version) {
    ordered_json commands = ordered_json::array();
    for (const UiCommand& command : asked) {
        ordered_json fields = ordered_json::array();
        for (const UiField& field : command.fields) {
            if (is_set_here(field.name)) continue;
            fields.push_back({{"name", field.name},
                              {"kind", field.kind},
                              {"group", field.group},
                              {"about", field.about},
                              {"takes_value", field.takes_value},
                              {"required", field.is_required},
                              {"usual", field.is_usual},
                              {"choices", field.choices},
                              {"takes_files", field.takes_files}});
        }
        commands.push_back({{"name", command.name}, {"about", command.about}, {"fields", std::move(fields)}});
    }
    return {{"version", version}, {"commands", std::move(commands)}};
}

}  // namespace pipeweaver::service
