// pipeweaver: the command line. Parses, calls, prints; one line and the right exit status when something is wrong.
#include "apps/commands.hpp"
#include "apps/costdb/costdb.hpp"
#include "apps/manual.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

namespace {

// One line, whatever the message holds.
int complain(std::string message, int status) {
    for (char& c : message)
        if (c == '\n') c = ' ';
    fmt::print(stderr, "pipeweaver: {}\n", message);
    return status;
}

// The innermost command that was named.
const CLI::App& command_of(const CLI::App& program) {
    const CLI::App* command = &program;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    return *command;
}

// What CLI11 says of the arguments, with the nearest known word where one is unknown.
std::string message_of(const CLI::ParseError& error, const CLI::App& program, int argc, char** argv) {
    const CLI::App& command = command_of(program);
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
            return pipeweaver::unknown("option", flag, flags);
        if (i == argc - 1 && !commands.empty() && !word.starts_with("-") && word != command.get_name())
            return pipeweaver::unknown("command", word, commands);
    }
    return error.what();
}

}  // namespace

int main(int argc, char** argv) {
    using namespace pipeweaver;
    CLI::App program{"plans the training steps of multimodal models: partitions, schedules, bounds"};
    program.require_subcommand(1);
    program.set_help_flag("-h,--help", "print this page and exit");
    program.set_version_flag("--version", "pipeweaver " PIPEWEAVER_VERSION, "print the version and exit");
    apps::describe(program, {.synopsis = "COMMAND [OPTION...]",
                             .description = "`pipeweaver COMMAND --help` says what a command does, with examples.",
                             .examples = {{"What models there are", "pipeweaver list models"},
                                          {"A plan",
                                           "pipeweaver plan --model dip-vlm-s --cluster h100-sxm:16 "
                                           "--dataset vlm-mix --budget 300ms --out first"}},
                             .files = {},
                             .see_also = {"README.md", "docs/formats.md", "docs/limits.md"}});
    apps::add_plan(program);
    apps::add_solve(program);
    apps::add_replay(program);
    apps::add_emit(program);
    apps::add_emulate(program);
    apps::add_validate(program);
    apps::add_costdb_commands(program);
    apps::add_bench(program);
    apps::add_list(program);
    apps::add_show(program);
    apps::add_completion(program);
    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return program.exit(error);
        return complain(message_of(error, program, argc, argv), static_cast<int>(ErrorKind::input));
    } catch (const Error& error) {
        return complain(error.what(), static_cast<int>(error.kind()));
    } catch (const std::bad_alloc&) {
        return complain("out of memory", static_cast<int>(ErrorKind::limit));
    } catch (const std::exception& error) {
        return complain(std::string("bug: ") + error.what(), 1);
    }
    return std::fflush(stdout) == 0 ? 0 : complain("stdout cannot be written", static_cast<int>(ErrorKind::io));
}
