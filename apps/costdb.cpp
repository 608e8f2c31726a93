#include "apps/costdb.hpp"

#include "apps/manual.hpp"
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/import.hpp"
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

void add_query(CLI::App& parent) {
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

struct ImportOptions {
    std::string folder, device, origin = "own measurement", licence = "unstated", output;
    std::vector<std::string> files;
};

void import(const ImportOptions& options) {
    if (options.folder.empty() == options.files.empty())
        fail(ErrorKind::input, "costdb import: give either --default FOLDER or tables");
    costdb::Imported done;
    if (options.folder.empty()) {
        if (options.device.empty()) fail(ErrorKind::input, "--device: is missing; tables do not name their device");
        std::vector<costdb::TableFile> tables;
        for (const auto& file : options.files)
            tables.push_back({file, options.device, options.origin, options.licence});
        done = costdb::import_tables(tables, options.output);
    } else {
        done = costdb::import_folder(options.folder, options.output);
    }
    for (const auto& left_out : done.left_out) fmt::print(stderr, "left out: {}\n", left_out);
    fmt::print("{} tables, {} points, {} duplicates merged -> {}\n", done.tables, done.points, done.duplicates,
               options.output);
}

void add_import(CLI::App& parent) {
    auto options = std::make_shared<ImportOptions>();
    auto* command = parent.add_subcommand("import", "build a cost database from tables of measurements");
    command->add_option("tables", options->files, "CSV tables, gzip allowed")->type_name("FILE")->group("Operands");
    command->add_option("--default", options->folder, "a folder of tables whose names say the device")
        ->type_name("DIR");
    command->add_option("--device", options->device, "device of the tables")->type_name("DEVICE");
    command->add_option("--origin", options->origin, "who measured them (default: own measurement)")->type_name("TEXT");
    command->add_option("--licence", options->licence, "of the numbers (default: unstated)")->type_name("TEXT");
    command->add_option("--out", options->output, "database to write; zipped if it ends in .gz")
        ->required()
        ->type_name("FILE");
    for (auto* option : command->get_options())
        if (option->get_group() == "Options" && option->get_name() != "--help") option->group("The database");
    describe(*command,
             {.synopsis = "(FILE... --device DEVICE | --default DIR) --out FILE",
              .description = "Builds a cost database from tables of measurements. A table's columns say what was "
                             "measured; equal points are merged, the first counts.",
              .examples = {{"Measurements of your own",
                            "pipeweaver costdb import examples/measured-gemm.csv --device h100_sxm --out own.sqlite"},
                           {"The same with their origin, zipped",
                            "pipeweaver costdb import examples/measured-gemm.csv --device h100_sxm "
                            "--origin profiler --licence CC0 --out own.sqlite.gz"}},
              .files = {},
              .see_also = {"pipeweaver costdb query", "costdb/README.md"}});
    command->callback([options] { import(*options); });
}

}  // namespace

void add_costdb_commands(CLI::App& app) {
    auto* costdb = app.add_subcommand("costdb", "operator costs: ask for them, import measurements");
    costdb->require_subcommand(1);
    describe(*costdb, {.synopsis = "query|import [OPTION...]",
                       .description = "The measured times of operators that every plan rests on.",
                       .examples = {},
                       .files = {},
                       .see_also = {"pipeweaver costdb query --help", "pipeweaver costdb import --help"}});
    add_query(*costdb);
    add_import(*costdb);
}

}  // namespace pipeweaver::apps
