// pipeweaver bench: measurements that anyone can repeat, each by a program of its own.
#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/programs.hpp"

namespace pipeweaver::apps {

void add_bench(CLI::App& program) {
    CLI::App& app = add_group(
        program, "bench", "measurements that anyone can repeat",
        {.synopsis = "(plan | draft | replay | search | dip | costdb | emulator | service | accuracy) [OPTION...]",
         .description =
             "Measurements of the program itself, each from one command. They are done by pipeweaver-bench and, for "
             "service, pipeweaver-load. These are not built with pipeweaver: in a checkout `cmake --build --preset "
             "release --target pipeweaver-bench pipeweaver-load` builds them beside it.",
         .see_also = {"pipeweaver bench plan --help", "pipeweaver bench draft --help", "pipeweaver bench replay --help",
                      "pipeweaver bench search --help", "pipeweaver bench dip --help", "pipeweaver bench costdb --help",
                      "pipeweaver bench emulator --help", "pipeweaver bench service --help",
                      "pipeweaver bench accuracy --help"}});
    for (const BenchCommand& one : bench_commands)
        add_elsewhere(app, one.name, one.about, [&one](const std::vector<std::string>& words) {
            std::vector<std::string> arguments{one.name};
            arguments.insert(arguments.end(), words.begin(), words.end());
            become_program(one.program, arguments);
        });
}

}  // namespace pipeweaver::apps
