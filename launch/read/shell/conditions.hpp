// Conditions of scripts, as far as their words are plain text.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <string>
#include <string_view>
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

/// Of "[ -z $NAME ]", with `how` "-z", what stands for the variable that is not set: "$NAME"; empty: it is another
/// command, or has another text.
[[nodiscard]] std::string asked_of(const std::vector<Word>& words, std::string_view how);

}  // namespace pipeweaver::launch
