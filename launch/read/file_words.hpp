// A configuration file among the words of a command.
#pragma once

#include "launch/read/words.hpp"

#include <vector>

namespace pipeweaver::launch {

/// Whether a program that takes a file of flags is started with one.
[[nodiscard]] bool names_file(const std::vector<Word>& words);

/// The words with the flags that such a file says in its place, in front of the others, which count more; its section
/// "ENV" says variables of `said`. Throws Error{io} without the file.
[[nodiscard]] std::vector<Word> with_file(const std::vector<Word>& words, SaidLaunch& said);

}  // namespace pipeweaver::launch
