// What the program says of itself: `--help` as a manual page, the same text for man(1), and completion for bash. All
// three are made from the options as the commands register them, so none can fall behind.
#pragma once

#include <CLI/App.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

/// What a command's page says beyond its options.
struct Manual {
    std::string synopsis;     ///< what stands behind "pipeweaver COMMAND"
    std::string description;  ///< paragraphs, each a line
    /// A remark, and a command line that runs as it is in the top folder of the repository, after the ones before it.
    std::vector<std::pair<std::string, std::string>> examples;
    std::vector<std::pair<std::string, std::string>> files;  ///< name, what it is
    std::vector<std::string> see_also;
};

/// Gives `command` its page.
void describe(CLI::App& command, Manual manual);

/// Adds a command with its page. A `Command` is made with its CLI::App, to register the options; its run() is called
/// when the command line has been parsed.
template <class Command>
void add_command(CLI::App& parent, const std::string& name, const std::string& about, Manual manual) {
    CLI::App& app = *parent.add_subcommand(name, about);
    describe(app, std::move(manual));
    const auto command = std::make_shared<Command>(app);  // shared: CLI11 keeps the callback
    app.callback([command] { command->run(); });
}

/// All pages in one, as source for man(1).
[[nodiscard]] std::string man_page(const CLI::App& program);

/// A script for bash that completes commands, options, their values and file names.
[[nodiscard]] std::string bash_completion(const CLI::App& program);

/// The commands right below `command` that --help names.
[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& command);

/// "pipeweaver plan", "pipeweaver costdb query".
[[nodiscard]] std::string full_name(const CLI::App& command);

/// Adds `completion`.
void add_completion(CLI::App& program);

}  // namespace pipeweaver::apps
