// What plain text becomes behind echo, tr, sed and their like, as command substitutions of launch scripts have them.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

/// The text that these commands print, each reading what the one before it prints: echo, printf %s or seq, then tr,
/// sed s/// and xargs. Nothing where one of them is another command, or is told something else.
[[nodiscard]] std::optional<std::string> piped(const std::vector<std::vector<Word>>& commands);

}  // namespace pipeweaver::launch
