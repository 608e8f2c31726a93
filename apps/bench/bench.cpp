// pipeweaver bench: measurements that anyone can repeat.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"

namespace pipeweaver::apps {

void add_bench(CLI::App& program) {
    CLI::App& app = add_group(
        program, "bench", "measurements that anyone can repeat",
        {.synopsis = "(plan | draft | replay | search | dip | costdb | emulator | service | accuracy) [OPTION...]",
         .description = "Measurements of the program itself, each from one command.",
         .examples = {},
         .files = {},
         .see_also = {"pipeweaver bench plan --help", "pipeweaver bench draft --help", "pipeweaver bench replay --help",
                      "pipeweaver bench search --help", "pipeweaver bench dip --help", "pipeweaver bench costdb --help",
                      "pipeweaver bench emulator --help", "pipeweaver bench service --help",
                      "pipeweaver bench accuracy --help"}});
    add_bench_plan(app);
    add_bench_replay(app);
    add_bench_search(app);
    add_bench_dip(app);
    add_bench_draft(app);
    add_bench_costdb(app);
    add_bench_emulator(app);
    add_bench_service(app);
    add_bench_accuracy(app);
}

}  // namespace pipeweaver::apps
