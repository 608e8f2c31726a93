#include "apps/command_line.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <new>

namespace pipeweaver::apps {

namespace {

CommandShape shape_of(const CLI::App& command);

// --help of a command: CLI11 asks its formatter.
class Page : public CLI::FormatterBase {
public:
    explicit Page(Manual manual) : manual_(std::move(manual)) {}

    std::string make_help(const CLI::App* command, std::string /*name*/, CLI::AppFormatMode /*mode*/) const override {
        return page_of(shape_of(*command));
    }

    const Manual& manual() const { return manual_; }

private:
    Manual manual_;
};

void describe(CLI::App& command, Manual manual) { command.formatter(std::make_shared<Page>(std::move(manual))); }

// The commands right below `command` that --help names.
std::vector<const CLI::App*> commands_of(const CLI::App& command) {
    return command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

std::string full_name(const CLI::App& command) {
    if (command.get_parent() == nullptr) return command.get_name();
    return full_name(*command.get_parent()) + " " + command.get_name();
}

OptionShape shape_of(const CLI::Option& option) {
    return {option.get_positional() ? option.get_name(true) : "",
            option.get_snames(),
            option.get_lnames(),
            option.get_type_name(),
            option.get_expected_max() > 0,
            option.get_group(),
            option.get_description()};
}

CommandShape shape_of(const CLI::App& command) {
    CommandShape shape{command.get_name(), full_name(command), command.get_description(), {}, {}, {}};
    if (const auto page = std::dynamic_pointer_cast<Page>(command.get_formatter())) shape.manual = page->manual();
    for (const CLI::Option* option : command.get_options()) shape.options.push_back(shape_of(*option));
    for (const CLI::App* one : commands_of(command)) shape.commands.push_back(shape_of(*one));
    return shape;
}

}  // namespace

CommandShape program_of(const CLI::App& command) {
    const CLI::App* top = &command;
    while (top->get_parent() != nullptr) top = top->get_parent();
    return shape_of(*top);
}

CLI::App& add_subcommand(CLI::App& parent, const std::string& name, const std::string& about, Manual manual) {
    CLI::App& app = *parent.add_subcommand(name, about);
    describe(app, std::move(manual));
    return app;
}

CLI::App& add_group(CLI::App& parent, const std::string& name, const std::string& about, Manual manual) {
    CLI::App& app = add_subcommand(parent, name, about, std::move(manual));
    app.require_subcommand(1);
    return app;
}

void on_run(CLI::App& command, std::function<void()> run) { command.callback(std::move(run)); }

namespace {

template <class Value>
CLI::Option& operand(CLI::App& app, const std::string& name, Value& value, const std::string& kind,
                     const std::string& about) {
    return *app.add_option(name, value, about)->type_name(kind)->group("Operands");
}

}  // namespace

void add_operand(CLI::App& app, const std::string& name, std::string& value, const std::string& kind,
                 const std::string& about) {
    operand(app, name, value, kind, about);
}

void add_required_operand(CLI::App& app, const std::string& name, std::string& value, const std::string& kind,
                          const std::string& about) {
    operand(app, name, value, kind, about).required();
}

void add_operands(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& kind,
                  const std::string& about) {
    operand(app, name, values, kind, about);
}

void add_texts(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& kind,
               const std::string& about, const std::string& group) {
    app.add_option("--" + name, values, about)->type_name(kind)->group(group);
}

void add_flag(CLI::App& app, const std::string& name, bool& value, const std::string& about, const std::string& group) {
    app.add_flag("--" + name, value, about)->group(group);
}

void add_number(CLI::App& app, const std::string& name, std::int64_t& value, const std::string& about,
                const std::string& group) {
    app.add_option("--" + name, value, about)->type_name("N")->group(group);
}

// The value stays with CLI11 until apply(): a configuration file may be named after the option it sets.
void Options::added(const Entry& entry) {
    const std::string name = "--" + entry.name;
    auto* option = entry.flag != nullptr ? app_->add_flag(name, entry.about)
                                         : app_->add_option(name, entry.about)->expected(1)->type_name(entry.kind);
    flags_.push_back(option->group(entry.group));
}

void Options::require() { flags_.back()->required(); }

void Options::with_configuration() {
    configuration_ =
        app_->add_option("--config", "a YAML or JSON file with these options as keys; the command line wins")
            ->expected(1)
            ->type_name("FILE")
            ->group(group());
}

namespace {

void set_from_command_line(const OptionTable::Entry& entry, const CLI::Option& option) {
    if (entry.flag != nullptr) {
        *entry.flag = option.as<bool>();
        return;
    }
    try {
        entry.set(option.as<std::string>());
    } catch (const Error& error) {
        const std::string name = "--" + entry.name;
        throw std::string_view(error.what()).starts_with(name) ? error : error.in(name);
    }
}

}  // namespace

void Options::apply() const {
    const auto given = [this](std::size_t entry) { return flags_[entry]->count() > 0; };
    for (std::size_t i = 0; i < entries().size(); ++i)
        if (given(i)) set_from_command_line(entries()[i], *flags_[i]);
    if (configuration_ == nullptr || configuration_->count() == 0) return;
    const auto file = JsonDocument::read(configuration_->as<std::string>());
    configure(file.root(), given);
}

nlohmann::ordered_json Options::given() const {
    nlohmann::ordered_json all = nlohmann::ordered_json::object();
    if (configuration_ != nullptr && configuration_->count() > 0)
        all = nlohmann::ordered_json::parse(JsonDocument::read(configuration_->as<std::string>()).root().raw().dump());
    for (std::size_t i = 0; i < entries().size(); ++i) {
        if (flags_[i]->count() == 0) continue;
        nlohmann::ordered_json& value = all[entries()[i].name];
        if (entries()[i].flag != nullptr)
            value = flags_[i]->as<bool>();
        else
            value = flags_[i]->as<std::string>();
    }
    return all;
}

namespace {

// The innermost command that was named.
const CLI::App& command_named(const CLI::App& program) {
    const CLI::App* command = &program;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    return *command;
}

// What CLI11 says of the arguments, with the nearest known word where one is unknown.
std::string message_of(const CLI::ParseError& error, const CLI::App& program, int argc, char** argv) {
    const CLI::App& command = command_named(program);
    std::vector<std::string> commands, flags;
    for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
        commands.push_back(sub->get_name());
    for (const CLI::Option* option : command.get_options())
        for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
    for (int i = 1; i < argc; ++i) {
        const std::string word(argv[i]);
        const std::string flag = word.substr(0, word.find('='));
        const bool known_flag = std::find(flags.begin(), flags.end(), flag) != flags.end();
        if (flag.starts_with("--") && !known_flag &&
            error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
            return unknown("option", flag, flags);
        if (i == argc - 1 && !commands.empty() && !word.starts_with("-") && word != command.get_name())
            return unknown("command", word, commands);
    }
    return error.what();
}

// False: only help or the version was asked for, and printed.
bool run_program(const Program& program, int argc, char** argv) {
    CLI::App app{program.about, program.name};
    app.require_subcommand(1);
    app.set_help_flag("-h,--help", "print this page and exit");
    app.set_version_flag("--version", program.name + " " + program.version, "print the version and exit");
    describe(app, program.manual);
    for (const auto add : program.commands) add(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw Error(ErrorKind::input, message_of(error, app, argc, argv));
        app.exit(error);
        return false;
    }
    return true;
}

}  // namespace

int run_to_exit_status(const Program& program, int argc, char** argv) {
    // One line, whatever the message holds.
    const auto complain = [&program](std::string message, int status) {
        std::replace(message.begin(), message.end(), '\n', ' ');
        fmt::print(stderr, "{}: {}\n", program.name, message);
        return status;
    };
    try {
        if (!run_program(program, argc, argv)) return 0;
    } catch (const Error& error) {
        return complain(error.what(), static_cast<int>(error.kind()));
    } catch (const std::bad_alloc&) {
        return complain("out of memory", static_cast<int>(ErrorKind::limit));
    } catch (const std::exception& error) {
        return complain(std::string("bug: ") + error.what(), 1);
    }
    return std::fflush(stdout) == 0 ? 0 : complain("stdout cannot be written", static_cast<int>(ErrorKind::io));
}

}  // namespace pipeweaver::apps
