// The commands. Each adds itself to the program; its work runs when the command line has been parsed, and throws Error.
#pragma once

namespace CLI {
class App;
}

namespace pipeweaver::apps {

void add_check(CLI::App& program);
void add_plan(CLI::App& program);
void add_solve(CLI::App& program);
void add_recommend(CLI::App& program);
void add_rl(CLI::App& program);
void add_fuse(CLI::App& program);
void add_groups(CLI::App& program);
void add_mix(CLI::App& program);
void add_replay(CLI::App& program);
void add_explain(CLI::App& program);
void add_emit(CLI::App& program);
void add_emulate(CLI::App& program);
void add_completion(CLI::App& program);
void add_costdb(CLI::App& program);
void add_bench(CLI::App& program);
void add_analyze(CLI::App& program);
void add_capacity(CLI::App& program);
void add_faults(CLI::App& program);
void add_layers(CLI::App& program);
void add_list(CLI::App& program);
void add_mcp(CLI::App& program);
void add_partition(CLI::App& program);
void add_serve(CLI::App& program);
void add_share(CLI::App& program);
void add_show(CLI::App& program);
void add_support(CLI::App& program);
void add_ui(CLI::App& program);
void add_validate(CLI::App& program);

}  // namespace pipeweaver::apps
