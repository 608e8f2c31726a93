#include "apps/command_line.hpp"

#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/utf8.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <new>
#include <unistd.h>

namespace pipeweaver::apps {

namespace {

CommandShape shape_of(const CLI::App& command);

// --help of a command: CLI11 asks its formatter.
class Page : public CLI::FormatterBase {
public:
    explicit Page(Manual manual) : manual_(std::move(manual)) {}

    std::string make_help(const CLI::App* command, std::string /*name*/, CLI::AppFormatMode mode) const override {
        return page_of(shape_of(*command), mode == CLI::AppFormatMode::All ? PageLength::whole : PageLength::usual);
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
    CommandShape shape{command.get_name(),
                       full_name(command),
                       command.get_description(),
                       command.get_help_ptr() != nullptr,
                       {},
                       {},
                       {}};
    if (const auto page = std::dynamic_pointer_cast<Page>(command.get_formatter())) shape.manual = page->manual();
    for (const CLI::Option* option : command.get_options())
        if (option != command.get_help_all_ptr() || !shape.manual.usual.empty())
            shape.options.push_back(shape_of(*option));
    for (const CLI::App* one : commands_of(command)) shape.commands.push_back(shape_of(*one));
    return shape;
}

// One of the commands below it may be named; named alone it prints its page.
void says_what_there_is(CLI::App& group) {
    group.require_subcommand(0, 1);
    group.callback([&group] {
        if (group.get_subcommands().empty()) fmt::print("{}", group.help());
    });
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
    says_what_there_is(app);
    return app;
}

void add_elsewhere(CLI::App& parent, const std::string& name, const std::string& about,
                   std::function<void(const std::vector<std::string>&)> run) {
    CLI::App& app = *parent.add_subcommand(name, about);
    app.set_help_flag();
    app.set_help_all_flag();
    app.prefix_command();
    on_run(app, [&app, run = std::move(run)] { run(app.remaining()); });
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

struct NamedFile {
    std::string option, path;
};

bool is_file(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored);
}

// Streams hold nothing that could be lost.
void require_apart(const NamedFile& written, const NamedFile& other) {
    std::error_code ignored;
    const bool is_stream = std::filesystem::exists(written.path, ignored) && !is_file(written.path) &&
                           !std::filesystem::is_directory(written.path, ignored);
    if (!is_stream && is_same_file(written.path, other.path))
        fail(ErrorKind::input, "{}: is '{}', the file of {}, allowed is another one", written.option, written.path,
             other.option);
}

}  // namespace

void Options::apply() const {
    set_all();
    require_files_apart();
}

void Options::set_all() const {
    const auto given = [this](std::size_t entry) { return flags_[entry]->count() > 0; };
    for (std::size_t i = 0; i < entries().size(); ++i)
        if (given(i)) set_from_command_line(entries()[i], *flags_[i]);
    if (configuration_ == nullptr || configuration_->count() == 0) return;
    const auto file = JsonDocument::read(configuration_->as<std::string>());
    configure(file.root(), given);
}

void Options::require_files_apart() const {
    std::vector<NamedFile> written, read;
    for (std::size_t i = 0; i < entries().size(); ++i)
        if (const auto file = entries()[i].say ? entries()[i].say() : std::nullopt)
            (entries()[i].writes ? written : read).push_back({"--" + entries()[i].name, *file});
    const auto is_entry = [this](const CLI::Option* one) {
        return std::find(flags_.begin(), flags_.end(), one) != flags_.end();
    };
    for (const CLI::Option* option : app_->get_options())
        if (!is_entry(option))
            for (const std::string& value : option->results()) read.push_back({option->get_name(), value});
    for (std::size_t i = 0; i < written.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) require_apart(written[i], written[j]);
        for (const NamedFile& one : read)
            if (is_file(one.path)) require_apart(written[i], one);
    }
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

// Names are held against each other without their dashes, which all have.
std::string unknown_option(const std::string& flag, const std::vector<std::string>& names, const CLI::App& command) {
    if (const auto near = nearest(flag.substr(2), names))
        return fmt::format("unknown option '{}'; did you mean '--{}'?", flag, *near);
    return fmt::format("unknown option '{}'; `{} --help` names the known ones", flag, full_name(command));
}

// Of an option that has two values, or none; empty: there is no such option.
std::string wrong_count(const CLI::App& command, int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    for (const CLI::Option* option : command.get_options()) {
        const std::string name = option->get_name();
        if (option->count() > 1 && option->get_items_expected_max() == 1)
            return fmt::format("{}: is given {} times, allowed is once", name, option->count());
        if (option->count() == 0 && std::find(words.begin(), words.end(), name) != words.end())
            return fmt::format("{}: has no value, {} is needed", name, option->get_type_name());
    }
    return {};
}

// What CLI11 says of the arguments, with the nearest known word where one is unknown.
std::string message_of(const CLI::ParseError& error, const CLI::App& program, int argc, char** argv) {
    const CLI::App& command = command_named(program);
    std::vector<std::string> commands, flags;
    for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
        commands.push_back(sub->get_name());
    for (const CLI::Option* option : command.get_options())
        for (const auto& name : option->get_lnames()) flags.push_back(name);
    for (int i = 1; i < argc; ++i) {
        const std::string word(argv[i]);
        const std::string flag = word.substr(0, word.find('='));
        const bool is_flag = flag.size() > 2 && flag.starts_with("--");
        if (is_flag && std::find(flags.begin(), flags.end(), flag.substr(2)) == flags.end() &&
            error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
            return unknown_option(flag, flags, command);
        const bool named = fmt::format(" {} ", full_name(command)).find(" " + word + " ") != std::string::npos;
        if (!commands.empty() && !word.starts_with("-") && !named) return unknown("command", word, commands);
    }
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch))
        if (std::string text = wrong_count(command, argc, argv); !text.empty()) return text;
    return error.what();
}

// "--replicas=" would take the next option for its value.
void require_values(int argc, char** argv) {
    for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
        const std::string_view word(argv[i]);
        if (word.starts_with("--") && word.find('=') == word.size() - 1)
            fail(ErrorKind::input, "{}: has no value behind '='", word.substr(0, word.size() - 1));
    }
}

// Names of files and all other words go into JSON.
void require_utf8(int argc, char** argv) {
    for (int k = 1; k < argc; ++k)
        if (!is_utf8(argv[k]))
            fail(ErrorKind::input, "argument {}: {}", k, must_be(std::string_view(argv[k]), "text in UTF-8"));
}

void parse_and_run(const Program& program, int argc, char** argv) {
    CLI::App app{program.about, program.name};
    says_what_there_is(app);
    app.set_help_flag("-h,--help", "print this page and exit");
    app.set_help_all_flag("--help-all", "print a page with all options and exit");
    app.set_version_flag("--version", program.name + " " + program.version, "print the version and exit");
    describe(app, program.manual);
    for (const auto add : program.commands) add(app);
    require_utf8(argc, argv);
    require_values(argc, argv);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw Error(ErrorKind::input, message_of(error, app, argc, argv));
        app.exit(error);  // prints help or the version
    }
}

// Files that are opened later must not take the places of standard streams that are closed: what is read from them or
// written to them fails.
void hold_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(stream, F_GETFD) == -1)
            static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

bool stdout_is_written() {
    std::cout.flush();
    const bool flushed = std::fflush(stdout) == 0;
    return flushed && std::ferror(stdout) == 0 && std::cout.good();
}

}  // namespace

Ended run_program(const Program& program, int argc, char** argv) {
    hold_standard_streams();
    const auto complain = [&program](std::string_view message, int status) {
        const std::string whose = program.name.substr(0, program.name.find(' '));
        return Ended{status, as_line(fmt::format("{}: {}", whose, message))};
    };
    const auto lost = [&] { return complain("stdout cannot be written", static_cast<int>(ErrorKind::io)); };
    try {
        parse_and_run(program, argc, argv);
    } catch (const Error& error) {
        return complain(error.what(), static_cast<int>(error.kind()));
    } catch (const std::bad_alloc&) {
        return complain("out of memory", static_cast<int>(ErrorKind::limit));
    } catch (const std::filesystem::filesystem_error& error) {
        return complain(fmt::format("{}: {}", error.path1().string(), error.code().message()),
                        static_cast<int>(ErrorKind::io));
    } catch (const std::exception& error) {
        return stdout_is_written() ? complain(std::string("bug: ") + error.what(), 1) : lost();
    }
    return stdout_is_written() ? Ended{} : lost();
}

int run_to_exit_status(const Program& program, int argc, char** argv) {
    const Ended ended = run_program(program, argc, argv);
    if (!ended.complaint.empty()) print_on_stderr(ended.complaint + '\n');
    return ended.status;
}

}  // namespace pipeweaver::apps
