// Conditions of scripts, as far as their words are plain text.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::launch {

/// Whether "[ -n x ]", "[[ $a == b ]]" or "test 1 -gt 0" holds, perhaps behind "if" or "elif"; nothing where it is
/// another command, has words that are not known, or says more than one thing.
[[nodiscard]] std::optional<bool> condition_of(const std::vector<Word>& words);

}  // namespace pipeweaver::launch
