// pipeweaver completion: the options of all commands as a script for a shell, and as a man page.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/completion/scripts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipeweaver::apps {

namespace {

struct CompletionKind {
    std::string name;
    std::string (*text)(const CommandShape&);
};

const std::vector<CompletionKind>& completion_kinds() {
    static const std::vector<CompletionKind> all{
        {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}, {"man", man_page}};
    return all;
}

Words completion_names() {
    Words names;
    names.reserve(completion_kinds().size());
    for (const CompletionKind& one : completion_kinds()) names.push_back(one.name);
    return names;
}

struct Completion {
    explicit Completion(CLI::App& command) : app(&command) {
        add_required_operand(command, "shell", kind, fmt::format("{}", fmt::join(completion_names(), "|")),
                             "bash, zsh, fish: the script; man: all help pages as one man page");
    }

    void run() const {
        for (const CompletionKind& one : completion_kinds()) {
            if (one.name != kind) continue;
            fmt::print("{}", one.text(program_of(*app)));
            return;
        }
        fail(ErrorKind::input, "completion: {}", unknown("kind", kind, completion_names()));
    }

    const CLI::App* app;
    std::string kind;
};

}  // namespace

void add_completion(CLI::App& program) {
    add_command<Completion>(
        program, "completion", "print a script that completes command lines, or a man page",
        {.synopsis = fmt::format("{}", fmt::join(completion_names(), "|")),
         .description = "Made from the commands' own options. `cmake --install` and the Python package put them below "
                        "share/, where shells and man look if that is of the system or the user.",
         .examples = {{"Switch completion on in this bash; for zsh the same with zsh",
                       "source <(pipeweaver completion bash)"},
                      {"For fish, from now on", "pipeweaver completion fish > pipeweaver.fish"},
                      {"Write the man page", "pipeweaver completion man > pipeweaver.1"}},
         .files = {{"share/bash-completion/completions/pipeweaver", "where the installed script for bash lies"},
                   {"share/zsh/site-functions/_pipeweaver", "that for zsh"},
                   {"share/fish/vendor_completions.d/pipeweaver.fish",
                    "that for fish; ~/.config/fish/completions is a user's own folder"},
                   {"share/man/man1/pipeweaver.1", "where the installed man page lies"}},
         .see_also = {"bash(1)", "zsh(1)", "fish(1)", "man(1)"}});
}

}  // namespace pipeweaver::apps
