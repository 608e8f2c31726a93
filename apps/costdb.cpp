#include "apps/costdb.hpp"

#include "apps/costdb_commands.hpp"
#include "apps/manual.hpp"

#include <CLI/CLI.hpp>

namespace pipeweaver::apps {

void add_costdb_commands(CLI::App& app) {
    auto* costdb = app.add_subcommand("costdb", "operator costs: ask for them, import measurements");
    costdb->require_subcommand(1);
    describe(*costdb, {.synopsis = "query|import|needs [OPTION...]",
                       .description = "The measured times of operators that every plan rests on.",
                       .examples = {},
                       .files = {},
                       .see_also = {"pipeweaver costdb query --help", "pipeweaver costdb import --help",
                                    "pipeweaver costdb needs --help"}});
    add_costdb_query(*costdb);
    add_costdb_import(*costdb);
    add_costdb_needs(*costdb);
}

}  // namespace pipeweaver::apps
