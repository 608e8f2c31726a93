// A pipeline layout as text or as an override's list of lists.
#pragma once

#include "pipeweaver/launch/spellings.hpp"

#include <string>

namespace pipeweaver::launch {

/// "Et*3|..." or "[[embedding,decoder],[decoder,loss]]", in letters; e is an encoder layer.
[[nodiscard]] ReadStages layout_letters(const std::string& layout);

}  // namespace pipeweaver::launch
