#include "launch/read/guess.hpp"

#include "launch/read/file_words.hpp"
#include "launch/read/recipe.hpp"
#include "launch/read/sharded_words.hpp"

#include <cstddef>

namespace pipeweaver::launch {

Guess guess(const std::vector<Word>& words) {
    Guess best{Dialect::sharded_settings, sharded_settings_among(words)};
    if (best.known > 0) return best;
    constexpr std::size_t by_recipe = 4;  // settings that the name of a recipe is worth
    if (const auto dialect = dialect_by_recipe(words)) return {*dialect, guess_of(*dialect, words).known + by_recipe};
    constexpr std::size_t by_file = 3;  // and a file of them
    if (names_file(words))
        return {Dialect::megatron_arguments, guess_of(Dialect::megatron_arguments, words).known + by_file};
    for (const Dialect dialect : {Dialect::megatron_arguments, Dialect::bridge_overrides, Dialect::titan_settings})
        if (const Guess one = guess_of(dialect, words); one.known > best.known) best = one;
    return best;
}

}  // namespace pipeweaver::launch
