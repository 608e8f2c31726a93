// The studies. Each adds itself to the program as a command.
#pragma once

namespace CLI {
class App;
}

namespace pipeweaver::studies {

void add_ablation(CLI::App& program);
void add_budget(CLI::App& program);
void add_memory(CLI::App& program);
void add_packing(CLI::App& program);
void add_shift(CLI::App& program);
void add_units(CLI::App& program);
void add_waves(CLI::App& program);

}  // namespace pipeweaver::studies
