// The entry of a framework that a command starts.
#pragma once

#include "launch/read/words.hpp"

#include <string>
#include <vector>

namespace pipeweaver::launch {

/// Throws Error{input} where the words start an entry that is not read, by its name.
void refuse_entry(const std::vector<Word>& words, const std::string& from);

/// Puts the entry that the words start into `said`, what they name, and the GPUs that they are launched on.
void put_entry(const std::vector<Word>& words, SaidLaunch& said);

}  // namespace pipeweaver::launch
