// What fragments of launch scripts have in common.
#pragma once

#include "pipeweaver/launch/launch.hpp"

#include <string>
#include <string_view>

namespace pipeweaver::emit {

/// "# text": one line, whatever a name holds.
[[nodiscard]] std::string comment(const std::string& text);

/// Comments that say `what` this is, of which job and rung, and what our emulation says of it.
[[nodiscard]] std::string launch_head(const launch::Launch& of, std::string_view what);

}  // namespace pipeweaver::emit
