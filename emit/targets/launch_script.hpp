// What fragments of launch scripts have in common.
#pragma once

#include "pipeweaver/launch/launch.hpp"

#include <string>
#include <string_view>

namespace pipeweaver::emit {

/// "# text": one line, whatever a name holds.
[[nodiscard]] std::string comment(const std::string& text);

/// What a module is, as in Launch::kinds; `usual` where the launch does not say it.
[[nodiscard]] std::string kind_of(const launch::Launch& of, const std::string& module, std::string_view usual);

/// Comments that say `what` this is, of which job and rung, and what our emulation says of it.
[[nodiscard]] std::string launch_head(const launch::Launch& of, std::string_view what);

}  // namespace pipeweaver::emit
