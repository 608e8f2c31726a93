// Conditions of scripts, as far as their words are plain text.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::launch {

/// Whether "[ -n x ]", "[[ $a == b && -z $c ]]" or "test 1 -gt 0" holds, perhaps behind "if" or "elif"; nothing where
/// it is another command, or rests on words that are not known, or on brackets.
[[nodiscard]] std::optional<bool> condition_of(const std::vector<Word>& words);

/// Whether they are a test that condition_of() reads, whatever it finds.
[[nodiscard]] bool is_test(const std::vector<Word>& words);

}  // namespace pipeweaver::launch
