#include "apps/costdb.hpp"

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
    auto* command = parent.add_subcommand("query", "Cost of each operator of a CSV table");
    command->add_option("--device", options->device, "a100_sxm, h100_sxm, h200_sxm, b200, ... or an alias")->required();
    command->add_option("--op", options->op, fmt::format("{}", fmt::join(costdb::query_operators(), "|")))->required();
    command->add_option("--input", options->input, "queries; columns as in the manual")->required();
    command->add_option("--output", options->output, "the queries with latency_us,basis,error_percent")->required();
    command->add_option("--database", options->database, "a file of `costdb import`; default: the embedded tables");
    command->footer("Example: pipeweaver costdb query --device h100_sxm --op gemm --input q.csv --output a.csv");
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
    auto* command = parent.add_subcommand("import", "Build a cost database from tables of measurements");
    command->add_option("tables", options->files, "CSV tables, gzip allowed");
    command->add_option("--default", options->folder, "a folder of tables whose names say the device");
    command->add_option("--device", options->device, "device of the tables");
    command->add_option("--origin", options->origin, "who measured them")->capture_default_str();
    command->add_option("--licence", options->licence, "of the numbers")->capture_default_str();
    command->add_option("--out", options->output, "database to write; zipped if it ends in .gz")->required();
    command->footer(
        "Example: pipeweaver costdb import --default ../shared/data/ops --out costdb/data/default.sqlite.gz");
    command->callback([options] { import(*options); });
}

}  // namespace

void add_costdb_commands(CLI::App& app) {
    auto* costdb = app.add_subcommand("costdb", "Operator costs: ask for them, import measurements");
    costdb->require_subcommand(1);
    add_query(*costdb);
    add_import(*costdb);
}

}  // namespace pipeweaver::apps
