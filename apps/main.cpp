// pipeweaver: the command line. Parses, calls, prints; one line and the right exit status when something is wrong.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "pipeweaver/base/error.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <new>

namespace {

using namespace pipeweaver;

// One line, whatever the message holds.
int complain(std::string message, int status) {
    for (char& c : message)
        if (c == '\n') c = ' ';
    fmt::print(stderr, "pipeweaver: {}\n", message);
    return status;
}

apps::Program program() {
    return {.about = "plans the training steps of multimodal models: partitions, schedules, bounds",
            .version = PIPEWEAVER_VERSION,
            .manual = {.synopsis = "COMMAND [OPTION...]",
                       .description = "`pipeweaver COMMAND --help` says what a command does, with examples.",
                       .examples = {{"What models there are", "pipeweaver list models"},
                                    {"A plan",
                                     "pipeweaver plan --model dip-vlm-s --cluster h100-sxm:16 "
                                     "--dataset vlm-mix --budget 300ms --out first"}},
                       .files = {},
                       .see_also = {"README.md", "docs/formats.md", "docs/limits.md"}},
            .commands = {apps::add_plan, apps::add_partition, apps::add_solve, apps::add_replay, apps::add_emit,
                         apps::add_emulate, apps::add_layers, apps::add_validate, apps::add_costdb, apps::add_serve,
                         apps::add_bench, apps::add_list, apps::add_show, apps::add_completion}};
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (!apps::run_program(program(), argc, argv)) return 0;
    } catch (const Error& error) {
        return complain(error.what(), static_cast<int>(error.kind()));
    } catch (const std::bad_alloc&) {
        return complain("out of memory", static_cast<int>(ErrorKind::limit));
    } catch (const std::exception& error) {
        return complain(std::string("bug: ") + error.what(), 1);
    }
    return std::fflush(stdout) == 0 ? 0 : complain("stdout cannot be written", static_cast<int>(ErrorKind::io));
}
