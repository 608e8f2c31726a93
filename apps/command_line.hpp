// The command line: commands with their options and manual pages. The one place that knows CLI11 is command_line.cpp;
// commands see a CLI::App as the name of a command that is being declared, and hand it on.
//
// Ownership    the variables that options and operands set must outlive the parsing.
#pragma once

#include "apps/manual.hpp"
#include "pipeweaver/base/options.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pipeweaver::apps {

/// Declares a command below `parent`.
CLI::App& add_subcommand(CLI::App& parent, const std::string& name, const std::string& about, Manual manual);

/// The same of a command that has commands of its own; alone it prints its page.
CLI::App& add_group(CLI::App& parent, const std::string& name, const std::string& about, Manual manual);

/// Declares a command of another program: `run` gets all words behind its name as they are, `--help` as well, so that
/// pages and completion name it and no more.
void add_elsewhere(CLI::App& parent, const std::string& name, const std::string& about,
                   std::function<void(const std::vector<std::string>&)> run);

/// What to do when the command line has been parsed and names the command.
void on_run(CLI::App& command, std::function<void()> run);

/// Declares a command. A `Command` is made with its CLI::App, to register the options; its run() is called when the
/// command line has been parsed.
template <class Command>
void add_command(CLI::App& parent, const std::string& name, const std::string& about, Manual manual) {
    CLI::App& app = add_subcommand(parent, name, about, std::move(manual));
    const auto command = std::make_shared<Command>(app);  // shared: a std::function can be copied
    on_run(app, [command] { command->run(); });
}

/// Options that may also stand in a configuration file (`--config FILE`, YAML or JSON, an object with the flags' names
/// as keys). What is on the command line wins.
class Options : public OptionTable {
public:
    explicit Options(CLI::App& app) : app_(&app) {}

    /// Adds `--config`.
    void with_configuration();

    /// The option that was added last must be on the command line.
    void require();

    /// Reads the configuration file if one is named, then applies every option given. Throws Error{input} also where a
    /// file would be written twice, or over one that is read, by any way. Call once, after parsing.
    void apply() const;

    /// Every option given, on the command line or in the configuration file, as a configuration file has it.
    nlohmann::ordered_json given() const;

private:
    void added(const Entry& entry) override;
    void set_all() const;
    void require_files_apart() const;

    CLI::App* app_;
    std::vector<CLI::Option*> flags_;  ///< of the entries
    CLI::Option* configuration_ = nullptr;
};

// What the command line alone has: set as soon as it is parsed, without apply().

/// An argument without a name; the kind is what --help shows.
void add_operand(CLI::App& app, const std::string& name, std::string& value, const std::string& kind,
                 const std::string& about);
void add_required_operand(CLI::App& app, const std::string& name, std::string& value, const std::string& kind,
                          const std::string& about);

/// Any number of them.
void add_operands(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& kind,
                  const std::string& about);

/// `--name VALUE...`, any number of them.
void add_texts(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& kind,
               const std::string& about, const std::string& group);

/// `--name`; one with an empty group is not listed.
void add_flag(CLI::App& app, const std::string& name, bool& value, const std::string& about, const std::string& group);

/// `--name N`, any whole number.
void add_number(CLI::App& app, const std::string& name, std::int64_t& value, const std::string& about,
                const std::string& group);

/// The whole program to which the command belongs.
[[nodiscard]] CommandShape program_of(const CLI::App& command);

struct Program {
    std::string name;  ///< "pipeweaver", "pipeweaver bench": its first word begins what is said of errors
    std::string about, version;
    Manual manual;
    std::vector<void (*)(CLI::App&)> commands;  ///< each adds one
};

/// How a command ended.
struct Ended {
    int status = 0;
    std::string complaint;  ///< the line for stderr where something is wrong; else empty
};

/// Parses, and runs the command that is named, or prints help or the version. Whatever goes wrong is said in one line,
/// with the nearest known word.
[[nodiscard]] Ended run_program(const Program& program, int argc, char** argv);

/// Parses, and runs the command that is named, or prints help or the version. What a program returns from main: where
/// something is wrong, also the command line, it prints one line on stderr, with the nearest known word.
[[nodiscard]] int run_to_exit_status(const Program& program, int argc, char** argv);

}  // namespace pipeweaver::apps
