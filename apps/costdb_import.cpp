#include "apps/costdb_commands.hpp"
#include "apps/manual.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/import.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

namespace pipeweaver::apps {

namespace {

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

}  // namespace

void add_costdb_import(CLI::App& parent) {
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

}  // namespace pipeweaver::apps
