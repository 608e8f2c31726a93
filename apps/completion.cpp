// pipeweaver completion: the options of all commands as a script for bash, and as a man page.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace pipeweaver::apps {

namespace {

using Words = std::vector<std::string>;

template <class Known>
Words names_of(const Known& all) {
    Words words;
    for (const auto& one : all) words.push_back(one.name);
    return words;
}

Words and_all(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// The parts between '|'.
Words split(const std::string& kind) {
    Words words;
    for (std::size_t from = 0; from <= kind.size();) {
        const std::size_t end = std::min(kind.find('|', from), kind.size());
        words.push_back(kind.substr(from, end - from));
        from = end + 1;
    }
    return words;
}

bool has_capital(const std::string& word) {
    return std::any_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// What may stand where the help says `kind`; of some kinds nothing is known, and files are the script's own matter.
Words words_of(const std::string& kind) {
    if (kind.find('|') != std::string::npos || !has_capital(kind)) {
        Words words = split(kind);
        std::erase_if(words, has_capital);  // of "auto|N" only "auto" can be offered
        return words;
    }
    if (kind == "MODEL") return and_all(workloads::model_names(), {"hf:"});
    if (kind == "NAME")
        return and_all(and_all(words_of("MODEL"), names_of(workloads::clusters())), names_of(workloads::networks()));
    if (kind == "CLUSTER") {
        Words words = names_of(workloads::clusters());
        for (auto& word : words) word += ":";
        return words;
    }
    if (kind == "DATASET") return names_of(workloads::datasets());
    if (kind == "DEVICE") return names_of(workloads::devices());
    if (kind == "NETWORK,...") return and_all(names_of(workloads::networks()), {"all"});
    if (kind == "POLICY") return names_of(search::policies());
    if (kind == "STRATEGY") return names_of(search::strategies());
    if (kind == "TARGET") return names_of(emit::targets());
    return {};
}

// The lines of the script's tables.
struct Tables {
    std::string commands, options, kinds, words;
    std::set<std::string> known;  // kinds that have their words

    void add_kind(const std::string& command, const std::string& place, const std::string& kind) {
        kinds += fmt::format("        '{} {}') echo '{}' ;;\n", command, place, kind);
        const Words all = words_of(kind);
        if (!all.empty() && known.insert(kind).second)
            words += fmt::format("        '{}') echo '{}' ;;\n", kind, fmt::join(all, " "));
    }

    // `path` is the command's name without the program's.
    void add(const CommandShape& command, const std::string& path) {
        Words below, flags;
        for (const CommandShape& one : command.commands) below.push_back(one.name);
        if (!below.empty()) commands += fmt::format("        '{}') echo '{}' ;;\n", path, fmt::join(below, " "));
        bool operand = false;
        for (const OptionShape& option : command.options) {
            if (option.group.empty()) continue;  // not listed
            if (!option.operand.empty() && !operand) add_kind(path, "operand", option.kind);
            operand = operand || !option.operand.empty();
            for (const auto& name : option.names) {
                flags.push_back("--" + name);
                if (option.takes_value) add_kind(path, flags.back(), option.kind);
            }
        }
        options += fmt::format("        '{}') echo '{}' ;;\n", path, fmt::join(flags, " "));
        for (const CommandShape& one : command.commands) add(one, path.empty() ? one.name : path + " " + one.name);
    }
};

constexpr auto script = R"SCRIPT(
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

std::string function(std::string_view name, std::string_view of, const std::string& cases) {
    return fmt::format("\n_pipeweaver_{}() {{\n    case {} in\n{}    esac\n}}\n", name, of, cases);
}

std::string bash_completion(const CommandShape& program) {
    Tables tables;
    tables.add(program, "");
    return "# bash completion for pipeweaver, made by `pipeweaver completion bash`\n" +
           function("commands", "$1", tables.commands) + function("options", "$1", tables.options) +
           function("kind", "\"$1 $2\"", tables.kinds) + function("words", "$1", tables.words) + script;
}

struct Completion {
    explicit Completion(CLI::App& command) : app(&command) {
        add_required_operand(command, "shell", kind, "bash|man",
                             "bash: the script; man: all help pages as one man page");
    }

    void run() const {
        const Words known{"bash", "man"};
        if (kind != "bash" && kind != "man") fail(ErrorKind::input, "completion: {}", unknown("kind", kind, known));
        const CommandShape program = program_of(*app);
        fmt::print("{}", kind == "man" ? man_page(program) : bash_completion(program));
    }

    const CLI::App* app;
    std::string kind;
};

}  // namespace

void add_completion(CLI::App& program) {
    add_command<Completion>(
        program, "completion", "print a script that completes command lines, or a man page",
        {.synopsis = "bash|man",
         .description = "Made from the commands' own options. `cmake --install` puts both in their places.",
         .examples = {{"Switch completion on in this shell", "source <(pipeweaver completion bash)"},
                      {"Write the man page", "pipeweaver completion man > pipeweaver.1"}},
         .files = {{"share/bash-completion/completions/pipeweaver", "where the installed script lies"},
                   {"share/man/man1/pipeweaver.1", "where the installed man page lies"}},
         .see_also = {"bash(1)", "man(1)"}});
}

}  // namespace pipeweaver::apps
