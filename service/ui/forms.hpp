// Which options the page may set, and how it is told of them.
#pragma once

#include "pipeweaver/service/ui_forms.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::service {

/// Whether an option is for who answers the page, not for the page: of files, of progress, of another machine.
[[nodiscard]] bool is_set_here(std::string_view name);

/// {"version", "commands": [{"name", "about", "fields"}]}
[[nodiscard]] nlohmann::ordered_json forms_json(const std::vector<UiCommand>& commands, const std::string& version);

}  // namespace pipeweaver::service
