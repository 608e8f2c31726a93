// pipeweaver: the command line. Parses, calls, prints; one line and the right exit status when something is wrong.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"

#ifdef PIPEWEAVER_TBB_MALLOC
#include <tbb/scalable_allocator.h>

#include <cstdint>
#endif

namespace {

using namespace pipeweaver;

apps::Program program() {
    return {.name = "pipeweaver",
            .about = "plans the training steps of multimodal models: partitions, schedules, bounds",
            .version = PIPEWEAVER_VERSION,
            .manual = {.synopsis = "COMMAND [OPTION...]",
                       .description = "`pipeweaver COMMAND --help` says what a command does, with examples.",
                       .examples = {{"What models there are", "pipeweaver list models"},
                                    {"A plan",
                                     "pipeweaver plan --model dip-vlm-s --cluster h100-sxm:16 "
                                     "--dataset vlm-mix --out first"}},
                       .see_also = {"README.md", "docs/formats.md", "docs/limits.md"}},
            .commands = {apps::add_plan,     apps::add_partition, apps::add_solve,     apps::add_replay,
                         apps::add_explain,  apps::add_check,     apps::add_emit,      apps::add_emulate,
                         apps::add_layers,   apps::add_analyze,   apps::add_recommend, apps::add_support,
                         apps::add_capacity, apps::add_faults,    apps::add_share,     apps::add_groups,
                         apps::add_mix,      apps::add_rl,        apps::add_fuse,      apps::add_validate,
                         apps::add_costdb,   apps::add_serve,     apps::add_ui,        apps::add_mcp,
                         apps::add_bench,    apps::add_list,      apps::add_show,      apps::add_completion}};
}

// A plan of many replicas writes texts of megabytes for each: what is given back of so large a heap goes to the system.
void limit_memory_kept() {
#ifdef PIPEWEAVER_TBB_MALLOC
    constexpr std::intptr_t most = std::intptr_t{512} << 20;
    scalable_allocation_mode(TBBMALLOC_SET_SOFT_HEAP_LIMIT, most);
#endif
}

}  // namespace

int main(int argc, char** argv) {
    limit_memory_kept();
    return apps::run_to_exit_status(program(), argc, argv);
}
