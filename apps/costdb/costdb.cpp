// pipeweaver costdb: the commands below it.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/costdb/costdb_commands.hpp"

namespace pipeweaver::apps {

void add_costdb(CLI::App& program) {
    CLI::App& app =
        add_group(program, "costdb", "operator costs: ask for them, import measurements, evaluate, calibrate",
                  {.synopsis = "query|explain|import|needs|stats|evaluate|calibrate|export [OPTION...]",
                   .description = "The measured times of operators that every plan rests on.",
                   .see_also = {"pipeweaver costdb query --help", "pipeweaver costdb explain --help",
                                "pipeweaver costdb import --help", "pipeweaver costdb needs --help",
                                "pipeweaver costdb evaluate --help", "pipeweaver costdb calibrate --help"}});
    add_costdb_query(app);
    add_costdb_explain(app);
    add_costdb_import(app);
    add_costdb_needs(app);
    add_costdb_stats(app);
    add_costdb_evaluate(app);
    add_costdb_calibrate(app);
    add_costdb_export(app);
}

}  // namespace pipeweaver::apps
