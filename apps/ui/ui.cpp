// pipeweaver ui: a page to plan with, whose forms are the commands' own options.
#include "pipeweaver/service/ui.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/ui/forms.hpp"

#include <filesystem>

namespace pipeweaver::apps {

namespace {

struct Ui {
    explicit Ui(CLI::App& command) : app(&command), options(command) {
        options.group("The page's server");
        options.with_configuration();
        options.text("http", ui.http, "ADDRESS:PORT",
                     "where it listens; port 0: one that is free, which it says (default 127.0.0.1:8081)");
        options.group("Others than this machine");
        options.text("token-file", ui.token_file, "FILE", "the token that the page asks for, in a file of its own");
        options.text("tls-certificate", ui.certificate, "FILE", "certificate chain (PEM)");
        options.text("tls-key", ui.key, "FILE", "its key (PEM)");
    }

    void run() {
        options.apply();
        ui.commands = ui_commands(program_of(*app));
        ui.program = std::filesystem::read_symlink("/proc/self/exe").string();
        ui.version = PIPEWEAVER_VERSION;
        service::serve_ui(ui);
    }

    const CLI::App* app;
    Options options;
    service::UiOptions ui;
};

}  // namespace

void add_ui(CLI::App& program) {
    add_command<Ui>(
        program, "ui", "a page to plan with, in the browser",
        {.synopsis = "[--http ADDRESS:PORT] [OPTION...]",
         .description =
             "Serves a page on this machine that asks what the command line asks: plan a step, check a launch, find "
             "what to rent, and play with schedules. Each answer is that of the command, which the page shows to be "
             "copied; files that are dropped on the page are all that it reads. Ends at Ctrl-C.\n"
             "Any address but the loopback one needs a token and TLS.",
         .examples = {{"Open what it prints in a browser", "pipeweaver ui"},
                      {"At whichever port is free", "pipeweaver ui --http 127.0.0.1:0"}},
         .see_also = {"pipeweaver plan --help", "docs/ui.md"}});
}

}  // namespace pipeweaver::apps
