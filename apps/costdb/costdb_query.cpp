#include "apps/costdb/costdb_commands.hpp"
#include "apps/manual.hpp"
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/query.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

namespace pipeweaver::apps {

namespace {

struct QueryOptions {
    std::string device, op, input, output, database;
};

void query(const QueryOptions& options) {
    const auto database = options.database.empty() ? costdb::CostDatabase::embedded(options.device)
                                                   : costdb::CostDatabase::read(options.database, options.device);
    const auto queries = CsvTable::read(options.input);
    write_files({{options.output, costdb::answer_queries(database, options.op, queries)}});
}

}  // namespace

void add_costdb_query(CLI::App& parent) {
    auto options = std::make_shared<QueryOptions>();
    auto* command = parent.add_subcommand("query", "cost of each operator of a CSV table");
    command->add_option("--device", options->device, "a100_sxm, h100_sxm, h200_sxm, b200, ... or an alias")
        ->required()
        ->type_name("DEVICE");
    command->add_option("--op", options->op, "what the rows are")
        ->required()
        ->type_name(fmt::format("{}", fmt::join(costdb::query_operators(), "|")));
    command->add_option("--input", options->input, "queries, CSV; docs/formats.md has the columns")
        ->required()
        ->type_name("FILE");
    command->add_option("--output", options->output, "the queries with latency_us,basis,error_percent")
        ->required()
        ->type_name("FILE");
    command->add_option("--database", options->database, "a file of `costdb import`; default: the embedded tables")
        ->type_name("FILE");
    for (auto* option : command->get_options())
        if (option->get_name() != "--help") option->group("The question");
    describe(*command,
             {.synopsis = "--device DEVICE --op OPERATOR --input FILE --output FILE [--database FILE]",
              .description = "Answers each row of a CSV table with the operator's time on the device, what it rests on "
                             "(exact, interpolated, extrapolated, modelled) and how wrong it may be.",
              .examples = {{"Matrix products",
                            "pipeweaver costdb query --device h100_sxm --op gemm "
                            "--input examples/gemm.csv --output gemm-times.csv"},
                           {"Attention on another device",
                            "pipeweaver costdb query --device a100_sxm --op attention "
                            "--input examples/attention.csv --output attention-times.csv"}},
              .files = {},
              .see_also = {"pipeweaver costdb import", "pipeweaver list devices", "docs/formats.md"}});
    command->callback([options] { query(*options); });
}

}  // namespace pipeweaver::apps
