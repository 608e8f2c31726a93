// Conditions of scripts, as far as their words are plain text.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::launch {

/// Whether "[ -n x ]", "[[ $a == b && -z $c ]]" or "test 1 -gt 0" holds, perhaps behind "if" or "elif"; nothing where
/// it is another command, or rests on words that are not known, or on brackets.
[[nodiscard]] std::optional<bool> condition_of(const std::vector<Word>& words);

/// Whether commands hold, the surer the greater: "a && b" holds as the least of both does, "a || b" as the greatest.
enum class Holds {
    never,
    perhaps,   ///< a test that is not known
    probably,  ///< another command: what stands behind it and "&&" is taken to run
    always,
};

/// Whether a command holds.
[[nodiscard]] Holds holds(const std::vector<Word>& words);

}  // namespace pipeweaver::launch
