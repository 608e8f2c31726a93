#include "apps/costdb/costdb.hpp"

#include "apps/costdb/costdb_commands.hpp"
#include "apps/manual.hpp"

#include <CLI/CLI.hpp>

namespace pipeweaver::apps {

void add_costdb_commands(CLI::App& app) {
    auto* costdb =
        app.add_subcommand("costdb", "operator costs: ask for them, import measurements, evaluate, calibrate");
    costdb->require_subcommand(1);
    describe(*costdb, {.synopsis = "query|import|needs|stats|evaluate|calibrate|export [OPTION...]",
                       .description = "The measured times of operators that every plan rests on.",
                       .examples = {},
                       .files = {},
                       .see_also = {"pipeweaver costdb query --help", "pipeweaver costdb import --help",
                                    "pipeweaver costdb needs --help", "pipeweaver costdb evaluate --help",
                                    "pipeweaver costdb calibrate --help"}});
    add_costdb_query(*costdb);
    add_costdb_import(*costdb);
    add_costdb_needs(*costdb);
    add_costdb_stats(*costdb);
    add_costdb_evaluate(*costdb);
    add_costdb_calibrate(*costdb);
    add_costdb_export(*costdb);
}

}  // namespace pipeweaver::apps
