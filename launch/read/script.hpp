// The commands of a bash script.
#pragma once

#include "launch/read/words.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::launch {

struct ScriptCommand {
    std::vector<Word> words;  ///< variables put in
    Variables in_front{};     ///< set for it alone
};

struct Script {
    std::vector<ScriptCommand> commands;
    std::map<std::string, std::size_t> in_branches{};    ///< variables that a branch or loop set last, with the line
    std::map<std::string, std::size_t> used_branches{};  ///< of these, what a word used
    std::vector<std::string> loops{};                    ///< of which the first row is taken, sentences
    Variables variables{};                               ///< those that are one plain text
    std::map<std::string, std::string> documents{};      ///< files that here-documents write, with their text
    std::vector<std::pair<std::string, std::size_t>> not_sourced{};  ///< files of `source` not found, with the line
    std::set<std::string> taken_as_one{};  ///< variables that nobody sets, and whose default that is
    std::size_t uncalled = 0;              ///< commands in front, of functions that no command calls
};

/// Reads a script, and files that it sources, where they are; `given` are variables that it need not set, and that it
/// does not change. Throws Error{input} with the line for a quote or an array that is not closed.
[[nodiscard]] Script read_commands(std::string_view text, const std::string& name, const Variables& given);

}  // namespace pipeweaver::launch
