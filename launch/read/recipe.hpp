// Recipes that a launch names, and what these set.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::launch {

/// The dialect of words that start a program which takes a recipe, or that name one that is known; none: they do not.
[[nodiscard]] std::optional<Dialect> dialect_by_recipe(const std::vector<Word>& words);

/// Puts what the recipe that the words name sets in front of the settings of `said`, where its name is known. Pre:
/// put_entry() was asked.
void put_recipe(const std::vector<Word>& words, SaidLaunch& said);

}  // namespace pipeweaver::launch
