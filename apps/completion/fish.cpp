// Completion for fish: a line for each command, option and operand, with what it is.
#include "apps/completion/scripts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipeweaver::apps {

namespace {

constexpr auto fish_script = R"SCRIPT(
function __pipeweaver_at --description 'Whether the words before the cursor name this command'
    set -l words (commandline -opc)
    set -l at
    for word in $words[2..]
        set -l further (string trim -- "$at $word")
        contains -- $further $__pipeweaver_all; and set at $further
    end
    test "$at" = "$argv[1]"
end

function __pipeweaver_hf --description 'Files after hf:'
    set -l word (commandline -ct | string replace -r '^--[^=]*=' '')
    string match -q 'hf:*' -- $word; or return
    for path in (__fish_complete_path (string sub -s 4 -- $word))
        echo hf:$path
    end
end

complete -c pipeweaver -f
)SCRIPT";

// In single quotes, as fish reads it.
std::string fish_quoted(std::string_view text) {
    std::string found = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') found += '\\';
        found += c;
    }
    return found + "'";
}

// The arguments of `complete` for values of a kind.
std::string fish_values(const std::string& kind) {
    std::string words = fmt::format("{}", fmt::join(words_of(kind), " "));
    if (kind == "DIR") words = "(__fish_complete_directories)";
    if (kind == "MODEL" || kind == "NAME") words += " (__pipeweaver_hf)";
    const std::string given = words.empty() ? "" : " -a " + fish_quoted(words);
    return (takes_files(kind) ? " -F" : " -f") + given;
}

std::string fish_lines(const std::string& path, const CommandShape& command) {
    const std::string begin = fmt::format("complete -c pipeweaver -n '__pipeweaver_at \"{}\"'", path);
    std::string lines;
    for (const CommandShape& one : command.commands)
        lines += fmt::format("{} -f -a {} -d {}\n", begin, one.name, fish_quoted(one.about));
    for (const OptionShape& option : command.options) {
        if (option.group.empty()) continue;  // not listed
        const std::string values = option.takes_value ? " -r" + fish_values(option.kind) : "";
        for (const auto& name : option.names)
            lines += fmt::format("{} -l {}{} -d {}\n", begin, name, values, fish_quoted(option.about));
    }
    if (const std::string kind = operand_of(command); !kind.empty()) lines += begin + fish_values(kind) + "\n";
    return lines;
}

}  // namespace

std::string fish_completion(const CommandShape& program) {
    std::string known, lines;
    for (const auto& [path, command] : all_commands(program)) {
        if (!path.empty()) known += " " + fish_quoted(path);
        lines += fish_lines(path, *command);
    }
    return "# fish completion for pipeweaver, made by `pipeweaver completion fish`\nset -g __pipeweaver_all" + known +
           "\n" + fish_script + lines;
}

}  // namespace pipeweaver::apps
