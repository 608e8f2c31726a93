// Files that are part of the program, as assembled between two symbols.
#pragma once

#include <cstddef>
#include <string_view>

namespace pipeweaver {

/// The bytes from `begin` up to `end`.
[[nodiscard]] inline std::string_view embedded_text(const char* begin, const char* end) {
    return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace pipeweaver
