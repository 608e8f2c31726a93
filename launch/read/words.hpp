// Words of a command, and the settings among them.
#pragma once

#include "pipeweaver/launch/said.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace pipeweaver::launch {

/// Of a launch: scripts and configurations are short.
inline constexpr std::size_t longest_file = std::size_t{16} << 20;

struct Word {
    std::string text;
    std::size_t line = 0;
    std::string unknown{};   ///< a variable or command in it that is not put in; empty: none
    bool quoted = false;     ///< some of it: it is a word even if empty
    bool uncertain = false;  ///< a variable in it is set in a branch that may not be taken
    bool redirects = false;  ///< it begins with '>' or '<' as written, perhaps behind a number: "2>"
};

/// What the words are, in order.
[[nodiscard]] std::vector<std::string> texts_of(const std::vector<Word>& words);

/// Puts the settings that words say in a dialect into `said`. A variable that the script leaves out ("... --bf16
/// $EXTRA_ARGS") is taken as empty, with a sentence in its notes; a known name's value with an unknown variable in it
/// is in `unset`.
void put_settings(Dialect dialect, const std::vector<Word>& words, SaidLaunch& said);

/// Sentences of settings that a dialect knows and that are given several times with different values.
[[nodiscard]] std::vector<std::string> notes_of_repeated(Dialect dialect, const std::vector<Setting>& settings);

/// A dialect, and how many settings of it are known.
struct Guess {
    Dialect dialect = Dialect::megatron_arguments;
    std::size_t known = 0;
};

/// How many settings of a dialect are among the words.
[[nodiscard]] Guess guess_of(Dialect dialect, const std::vector<Word>& words);

/// The entry whose program the words start; null: none has such a program.
[[nodiscard]] const frameworks::Entry* entry_started(const std::vector<Word>& words);

/// Whether a word is all of the caller's own arguments, "$@" or "${@:2}": taken as none.
[[nodiscard]] bool are_arguments(const Word& word);

/// The words without redirections, "2>&1" or "> log", and the files that these name.
[[nodiscard]] std::vector<Word> without_redirections(const std::vector<Word>& words);

/// Whether a dialect's table has the name.
[[nodiscard]] bool is_known(Dialect dialect, const std::string& name);

}  // namespace pipeweaver::launch
