// What plain text becomes behind echo, tr, sed and their like, as command substitutions of launch scripts have them.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

/// The folder that "cd FOLDER && pwd" prints, relative as it is. Nothing for other commands.
[[nodiscard]] std::optional<std::string> folder_entered(const std::vector<std::vector<Word>>& commands);

/// The text that these commands print, each reading what the one before prints: echo, printf %s, seq, expr, dirname,
/// basename, realpath or readlink, then tr, sed s/// and xargs. Nothing where one is another command, or is told
/// something else.
[[nodiscard]] std::optional<std::string> piped(const std::vector<std::vector<Word>>& commands);

}  // namespace pipeweaver::launch
