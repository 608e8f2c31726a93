// The page's forms, made from the options of the commands that it asks.
#pragma once

#include "apps/manual.hpp"
#include "pipeweaver/service/ui_forms.hpp"

#include <vector>

namespace pipeweaver::apps {

/// Those of the program's commands that the page asks, with their options.
[[nodiscard]] std::vector<service::UiCommand> ui_commands(const CommandShape& program);

}  // namespace pipeweaver::apps
