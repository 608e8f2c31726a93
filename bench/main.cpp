// pipeweaver-bench: what `pipeweaver bench` becomes for all that it measures but the service.
#include "apps/command_line.hpp"
#include "bench/benches.hpp"

namespace {

using namespace pipeweaver;

apps::Program program() {
    return {.name = "pipeweaver bench",
            .about = "measurements that anyone can repeat",
            .version = PIPEWEAVER_VERSION,
            .manual = {.synopsis = "(plan | draft | replay | search | dip | costdb | emulator | accuracy) [OPTION...]",
                       .description = "Measurements of the program itself, each from one command. `pipeweaver bench` "
                                      "runs them.",
                       .see_also = {"pipeweaver bench --help"}},
            .commands = {bench::add_plan, bench::add_replay, bench::add_search, bench::add_dip, bench::add_draft,
                         bench::add_costdb, bench::add_emulator, bench::add_accuracy}};
}

}  // namespace

int main(int argc, char** argv) { return apps::run_to_exit_status(program(), argc, argv); }
