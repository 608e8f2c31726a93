// pipeweaver ui: a page to plan with, whose forms are the commands' own options.
#include "pipeweaver/service/ui.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/completion/scripts.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace pipeweaver::apps {

namespace {

constexpr std::array<std::string_view, 5> asked{"plan", "check", "recommend", "emulate", "solve"};

// Also of fields whose words the page can only suggest: a model may be a file, a cluster needs a number of GPUs.
service::UiField field_of(const OptionShape& option, const Manual& manual) {
    service::UiField field;
    field.name = option.operand.empty() && !option.names.empty() ? option.names.front() : "";
    field.kind = option.kind;
    field.group = option.group;
    field.about = option.about;
    field.takes_value = option.takes_value;
    field.is_required = is_required(option);
    field.is_usual =
        manual.usual.empty() || std::find(manual.usual.begin(), manual.usual.end(), field.name) != manual.usual.end();
    if (option.takes_value) field.choices = words_of(option.kind);
    field.takes_files = takes_files(option.kind);
    return field;
}

service::UiCommand command_of(const CommandShape& shape) {
    service::UiCommand command{shape.name, shape.about, false, {}};
    for (const OptionShape& option : shape.options) {
        const bool is_out = std::find(option.names.begin(), option.names.end(), "out") != option.names.end();
        command.writes = command.writes || is_out;
        if (!option.group.empty() && !is_out) command.fields.push_back(field_of(option, shape.manual));
    }
    return command;
}

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
        const CommandShape program = program_of(*app);
        for (const CommandShape& shape : program.commands)
            if (std::find(asked.begin(), asked.end(), shape.name) != asked.end())
                ui.commands.push_back(command_of(shape));
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
