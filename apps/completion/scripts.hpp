// The scripts that complete command lines, made from the options of the commands: one for each shell. What may stand
// where is the same in all; how it is said is the own matter of each.
#pragma once

#include "apps/manual.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::apps {

using Words = std::vector<std::string>;

/// What may stand where the help says `kind`; of some kinds nothing is known, and files are the script's own matter.
[[nodiscard]] Words words_of(const std::string& kind);

/// Of an option or operand whose kind is MODEL, CLUSTER or FILE, files may stand there.
[[nodiscard]] bool takes_files(std::string_view kind);

/// `of` is "$1": the function `_pipeweaver_<name>` that prints what the lines of `cases` say.
[[nodiscard]] std::string case_function(std::string_view name, std::string_view of, const std::string& cases);

/// A command and all below it, with its name without the program's: "", "plan", "costdb query", ...
struct NamedCommand {
    std::string path;
    const CommandShape* shape;
};
[[nodiscard]] std::vector<NamedCommand> all_commands(const CommandShape& program);

/// The kind of the first operand; empty: it has none.
[[nodiscard]] std::string operand_of(const CommandShape& command);

/// The cases of `_pipeweaver_kind` and `_pipeweaver_words` for bash and zsh: which kind of value an option of a command
/// has ("plan --model" is MODEL), and which words there are of a kind.
struct KindCases {
    std::string kinds, words;
};
[[nodiscard]] KindCases kind_cases(const CommandShape& program);

[[nodiscard]] std::string bash_completion(const CommandShape& program);
[[nodiscard]] std::string zsh_completion(const CommandShape& program);
[[nodiscard]] std::string fish_completion(const CommandShape& program);

}  // namespace pipeweaver::apps
