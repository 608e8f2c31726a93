// pipeweaver: the command line. Parses, calls, prints; one line and the right exit status when something is wrong.
#include "apps/commands.hpp"
#include "apps/costdb.hpp"
#include "pipeweaver/base/error.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace {

// One line, whatever the message holds.
int complain(std::string message, int status) {
    for (char& c : message)
        if (c == '\n') c = ' ';
    fmt::print(stderr, "pipeweaver: {}\n", message);
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace pipeweaver;
    CLI::App program{"pipeweaver plans the training steps of multimodal models: partitions, schedules, bounds."};
    program.require_subcommand(1);
    program.set_version_flag("--version", "pipeweaver " PIPEWEAVER_VERSION);
    apps::add_plan(program);
    apps::add_solve(program);
    apps::add_replay(program);
    apps::add_emit(program);
    apps::add_costdb_commands(program);
    apps::add_bench(program);
    apps::add_list(program);
    apps::add_show(program);
    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return program.exit(error);
        return complain(error.what(), static_cast<int>(ErrorKind::input));
    } catch (const Error& error) {
        return complain(error.what(), static_cast<int>(error.kind()));
    } catch (const std::bad_alloc&) {
        return complain("out of memory", static_cast<int>(ErrorKind::limit));
    } catch (const std::exception& error) {
        return complain(std::string("bug: ") + error.what(), 1);
    }
    return std::fflush(stdout) == 0 ? 0 : complain("stdout cannot be written", static_cast<int>(ErrorKind::io));
}
