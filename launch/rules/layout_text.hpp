// A pipeline layout as text or as an override's list of lists.
#pragma once

#include "pipeweaver/launch/spellings.hpp"

#include <string>

namespace pipeweaver::launch {

struct LayoutLetters {
    LayoutStages stages;
    std::string why_not{};  ///< what is wrong with the text
};

/// "Et*3|..." or "[[embedding,decoder],[decoder,loss]]", in letters; e is an encoder layer.
[[nodiscard]] LayoutLetters layout_letters(const std::string& layout);

}  // namespace pipeweaver::launch
