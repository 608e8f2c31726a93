// Whether bytes are text.
#pragma once

#include <string_view>

namespace pipeweaver {

/// Whether all of it is characters in UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace pipeweaver
