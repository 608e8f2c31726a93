// A command run inside this process: what it prints is taken, not shown.
#pragma once

#include "apps/mcp/progress.hpp"
#include "apps/mcp/tools.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::apps {

/// Runs the tool's command and gives the result of tools/call: the command's JSON as text and, with `structured`, as it
/// is; or its line, with what to ask next. Meanwhile `on` is told of its progress, by another thread; it may be null.
/// Pre: `arguments` is an object. One at a time: standard output and error are taken. Throws Error{io} where they
/// cannot be.
[[nodiscard]] nlohmann::ordered_json call_tool(const Tool& tool, const CommandShape& command,
                                               const nlohmann::ordered_json& arguments, bool structured,
                                               const OnProgress& on);

}  // namespace pipeweaver::apps
