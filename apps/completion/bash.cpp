// Completion for bash.
#include "apps/completion/scripts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipeweaver::apps {

namespace {

constexpr auto bash_script = R"SCRIPT(
# What the word under the cursor may be. --option=value and name:part arrive in pieces.
_pipeweaver() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} earlier='' command='' kind='' below='' i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; ++i)); do
        below=$(_pipeweaver_commands "$command")
        [[ -n ${COMP_WORDS[i]} && " $below " == *" ${COMP_WORDS[i]} "* ]] && command+="${command:+ }${COMP_WORDS[i]}"
    done
    ((COMP_CWORD >= 2)) && earlier=${COMP_WORDS[COMP_CWORD - 2]}
    if [[ $cur == '=' ]]; then
        cur=''
    elif [[ $cur == ':' ]]; then
        cur='' earlier=$before before=':'
    elif [[ $before == '=' ]]; then
        before=$earlier
    fi
    if [[ $before == ':' ]]; then
        [[ $earlier == hf ]] || return 0
        kind=FILE
    elif [[ $before == -* ]]; then
        kind=$(_pipeweaver_kind "$command" "$before")
    fi
    if [[ -z $kind ]]; then
        below=$(_pipeweaver_commands "$command")
        kind=$(_pipeweaver_kind "$command" operand)
        if [[ $cur == -* || -z $below$kind ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_pipeweaver_options "$command")" -- "$cur")
            return 0
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "${below:-$(_pipeweaver_words "$kind")}" -- "$cur")
    case $kind in
        FILE | MODEL | CLUSTER) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur") ;;
        DIR) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    esac
    case $kind in FILE | DIR) compopt -o filenames 2>/dev/null ;; esac
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null
    return 0
}

complete -F _pipeweaver pipeweaver
)SCRIPT";

// A line for each command that has commands below it, and one for each command's options.
std::pair<std::string, std::string> bash_cases(const CommandShape& program) {
    std::string commands, options;
    for (const auto& [path, command] : all_commands(program)) {
        Words below, flags;
        for (const CommandShape& one : command->commands) below.push_back(one.name);
        for (const OptionShape& option : command->options) {
            if (option.group.empty()) continue;  // not listed
            for (const auto& name : option.names) flags.push_back("--" + name);
        }
        if (!below.empty()) commands += fmt::format("        '{}') echo '{}' ;;\n", path, fmt::join(below, " "));
        options += fmt::format("        '{}') echo '{}' ;;\n", path, fmt::join(flags, " "));
    }
    return {commands, options};
}

}  // namespace

std::string bash_completion(const CommandShape& program) {
    const auto [commands, options] = bash_cases(program);
    const KindCases cases = kind_cases(program);
    return "# bash completion for pipeweaver, made by `pipeweaver completion bash`\n" +
           case_function("commands", "$1", commands) + case_function("options", "$1", options) +
           case_function("kind", "\"$1 $2\"", cases.kinds) + case_function("words", "$1", cases.words) + bash_script;
}

}  // namespace pipeweaver::apps
