// The subcommands of `pipeweaver costdb`, a file each.
#pragma once

namespace CLI {
class App;
}

namespace pipeweaver::apps {

void add_costdb_query(CLI::App& parent);
void add_costdb_explain(CLI::App& parent);
void add_costdb_import(CLI::App& parent);
void add_costdb_needs(CLI::App& parent);
void add_costdb_stats(CLI::App& parent);
void add_costdb_evaluate(CLI::App& parent);
void add_costdb_calibrate(CLI::App& parent);
void add_costdb_export(CLI::App& parent);

}  // namespace pipeweaver::apps
