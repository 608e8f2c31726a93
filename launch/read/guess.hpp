// Whose words a command is in.
#pragma once

#include "launch/read/words.hpp"

#include <vector>

namespace pipeweaver::launch {

/// The dialect that has the most settings among the words, and how many of them it knows. One whose recipe they name is
/// it, with settings more.
[[nodiscard]] Guess guess(const std::vector<Word>& words);

}  // namespace pipeweaver::launch
