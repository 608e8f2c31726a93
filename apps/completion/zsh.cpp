// Completion for zsh: commands and options with what they are.
#include "apps/completion/scripts.hpp"

#include <fmt/format.h>

namespace pipeweaver::apps {

namespace {

constexpr auto zsh_script = R"SCRIPT(
_pipeweaver_offer() {
    local kind=$1
    local -a all open
    all=(${=$(_pipeweaver_words "$kind")})
    open=(${(M)all:#*:})
    all=(${all:#*:})
    (($#all)) && compadd -- $all
    (($#open)) && compadd -S '' -- $open
    case $kind in
        FILE | MODEL | CLUSTER) _files ;;
        DIR) _files -/ ;;
    esac
}

# What the word under the cursor may be.
_pipeweaver() {
    local command='' kind='' i
    local -a below
    below=("${(@f)$(_pipeweaver_commands '')}")
    for ((i = 2; i < CURRENT; ++i)); do
        [[ -n ${words[i]} && -n ${(M)below:#${words[i]}:*} ]] || continue
        command+="${command:+ }${words[i]}"
        below=("${(@f)$(_pipeweaver_commands "$command")}")
    done
    below=(${below:#})
    if [[ $PREFIX == --*=* ]]; then
        kind=$(_pipeweaver_kind "$command" "${PREFIX%%=*}")
        compset -P '*='
        [[ -n $kind ]] || return 1
    elif [[ ${words[CURRENT-1]} == -* ]]; then
        kind=$(_pipeweaver_kind "$command" "${words[CURRENT-1]}")
    fi
    if [[ -z $kind ]]; then
        kind=$(_pipeweaver_kind "$command" operand)
        if [[ $PREFIX == -* || -z $below$kind ]]; then
            local -a options
            options=("${(@f)$(_pipeweaver_options "$command")}")
            options=(${options:#})
            _describe -o option options
            return
        fi
        if (($#below)); then
            _describe command below
            return
        fi
    fi
    if [[ $PREFIX == hf:* ]]; then
        compset -P 'hf:'
        _files
    elif [[ $PREFIX != *:* ]]; then
        _pipeweaver_offer "$kind"
    fi
}

if [[ ${funcstack[1]} == _pipeweaver ]]; then
    _pipeweaver "$@"
else
    (($+functions[compdef])) || { autoload -Uz compinit && compinit }
    compdef _pipeweaver pipeweaver
fi
)SCRIPT";

// What _describe takes: a name, a colon, what it is; in single quotes, as zsh reads them.
std::string described(const std::string& name, std::string_view about) {
    std::string found = " '" + name + ":";
    for (const char c : about) found += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return found + "'";
}

std::pair<std::string, std::string> zsh_cases(const CommandShape& program) {
    std::string commands, options;
    for (const auto& [path, command] : all_commands(program)) {
        std::string below, flags;
        for (const CommandShape& one : command->commands) below += described(one.name, one.about);
        for (const OptionShape& option : command->options) {
            if (option.group.empty()) continue;  // not listed
            for (const auto& name : option.names) flags += described("--" + name, option.about);
        }
        if (!below.empty()) commands += fmt::format("        '{}') print -rl --{} ;;\n", path, below);
        options += fmt::format("        '{}') print -rl --{} ;;\n", path, flags);
    }
    return {commands, options};
}

}  // namespace

std::string zsh_completion(const CommandShape& program) {
    const auto [commands, options] = zsh_cases(program);
    const KindCases cases = kind_cases(program);
    return "#compdef pipeweaver\n# zsh completion for pipeweaver, made by `pipeweaver completion zsh`\n" +
           case_function("commands", "$1", commands) + case_function("options", "$1", options) +
           case_function("kind", "\"$1 $2\"", cases.kinds) + case_function("words", "$1", cases.words) + zsh_script;
}

}  // namespace pipeweaver::apps
