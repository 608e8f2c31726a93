// The benchmarks. Each adds itself to the program as a command.
#pragma once

namespace CLI {
class App;
}

namespace pipeweaver::bench {

void add_accuracy(CLI::App& program);
void add_costdb(CLI::App& program);
void add_dip(CLI::App& program);
void add_draft(CLI::App& program);
void add_emulator(CLI::App& program);
void add_plan(CLI::App& program);
void add_replay(CLI::App& program);
void add_search(CLI::App& program);

}  // namespace pipeweaver::bench
