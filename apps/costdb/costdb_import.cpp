#include "apps/costdb/costdb_commands.hpp"
#include "apps/costdb/trace_report.hpp"
#include "apps/manual.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/costdb/import.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

namespace {

struct ImportOptions {
    std::string folder, device, origin = "own measurement", licence = "unstated", output, into;
    std::string trace, kernels, json;
    std::int64_t gpus_per_node = 8;
    std::vector<std::string> files;
};

void check(const ImportOptions& options) {
    const int inputs =
        (options.folder.empty() ? 0 : 1) + (options.files.empty() ? 0 : 1) + (options.trace.empty() ? 0 : 1);
    if (inputs != 1) fail(ErrorKind::input, "costdb import: give one of --default FOLDER, --trace FILE and tables");
    if (!options.output.empty() && !options.into.empty())
        fail(ErrorKind::input, "--into: adds to a database, --out writes a new one; give one of them");
    if (!options.folder.empty() && options.output.empty()) fail(ErrorKind::input, "--out: is missing");
    if (options.trace.empty() && options.output.empty() && options.into.empty())
        fail(ErrorKind::input, "--out: is missing; it writes a new database, --into adds to one");
    for (const auto& [name, value] : {std::pair("--kernels", &options.kernels), std::pair("--json", &options.json)})
        if (!value->empty() && options.trace.empty()) fail(ErrorKind::input, "{}: is for --trace only", name);
    if (options.gpus_per_node < 1 || options.gpus_per_node > 1024)
        fail(ErrorKind::input, "--gpus-per-node: is {}, allowed are 1 to 1024", options.gpus_per_node);
}

void print(const costdb::Imported& done, const ImportOptions& options) {
    constexpr std::size_t most_outliers = 5;
    for (const auto& left_out : done.left_out) fmt::print(stderr, "left out: {}\n", left_out);
    for (std::size_t i = 0; i < done.outliers.size() && i < most_outliers; ++i)
        fmt::print(stderr, "kept, but looks wrong: {}\n", done.outliers[i]);
    if (done.outliers.size() > most_outliers)
        fmt::print(stderr, "kept, but look wrong: {} more\n", done.outliers.size() - most_outliers);
    fmt::print("{} tables, {} points, {} duplicates merged, {} outliers kept", done.tables, done.points,
               done.duplicates, done.outliers.size());
    if (!options.into.empty()) fmt::print(", {} tables replaced, {} unchanged", done.replaced, done.unchanged);
    fmt::print(" -> {}\n", options.into.empty() ? options.output : options.into);
}

void store(const std::vector<costdb::TableFile>& tables, const ImportOptions& options) {
    print(
        options.into.empty() ? costdb::import_tables(tables, options.output) : costdb::add_tables(tables, options.into),
        options);
}

void import_trace(const ImportOptions& options) {
    const auto report = costdb::read_trace(options.trace, {options.gpus_per_node, options.kernels});
    print_trace_report(report);
    if (!options.json.empty()) write_files({{options.json, trace_report_json(report)}});
    if (options.output.empty() && options.into.empty()) return;
    const auto& points = report.points;
    if (points.gemm.empty() && points.attention.empty() && points.collective.empty())
        fmt::print("no points: nothing is written\n");
    else
        store({{options.trace, options.device, options.origin, options.licence, &report}}, options);
}

void import(const ImportOptions& options) {
    check(options);
    if (!options.trace.empty()) {
        import_trace(options);
    } else if (options.folder.empty()) {
        std::vector<costdb::TableFile> tables;
        for (const auto& file : options.files)
            tables.push_back({file, options.device, options.origin, options.licence});
        store(tables, options);
    } else {
        print(costdb::import_folder(options.folder, options.output), options);
    }
}

void group_options(CLI::App& command) {
    for (auto* option : command.get_options()) {
        const auto name = option->get_name();
        if (option->get_group() != "Options" || name == "--help") continue;
        const bool of_trace = name == "--trace" || name == "--kernels" || name == "--json" || name == "--gpus-per-node";
        option->group(of_trace ? "Traces" : "The database");
    }
}

}  // namespace

void add_costdb_import(CLI::App& parent) {
    auto options = std::make_shared<ImportOptions>();
    auto* command = parent.add_subcommand("import", "build a cost database from measurements, or add to one");
    command->add_option("tables", options->files, "CSV tables or nccl-tests output, gzip allowed")
        ->type_name("FILE")
        ->group("Operands");
    command->add_option("--default", options->folder, "a folder of tables whose names say the device")
        ->type_name("DIR");
    command->add_option("--device", options->device, "device of the measurements, where they do not name it")
        ->type_name("DEVICE");
    command->add_option("--origin", options->origin, "who measured them (default: own measurement)")->type_name("TEXT");
    command->add_option("--licence", options->licence, "of the numbers (default: unstated)")->type_name("TEXT");
    command->add_option("--out", options->output, "database to write; zipped if it ends in .gz")->type_name("FILE");
    command->add_option("--into", options->into, "database to add to; what is added answers first")->type_name("FILE");
    command->add_option("--trace", options->trace, "a PyTorch profiler trace, .json or .json.gz")->type_name("FILE");
    command->add_option("--kernels", options->kernels, "CSV of all its kernels, in order on each stream")
        ->type_name("FILE");
    command->add_option("--json", options->json, "the report on it as JSON")->type_name("FILE");
    command->add_option("--gpus-per-node", options->gpus_per_node, "of the machine that was traced (default: 8)")
        ->type_name("N");
    group_options(*command);
    describe(*command,
             {.synopsis = "FILE... [--device DEVICE] (--out FILE | --into FILE) | --trace FILE [OPTION...] | "
                          "--default DIR --out FILE",
              .description =
                  "Builds a cost database from measurements, or adds to one. A table's columns say what was measured; "
                  "equal points are merged. Output of nccl-tests is taken as it was printed. Of a trace, every kernel "
                  "is listed with what it was taken for; operators whose shapes it has become points.",
              .examples = {{"Measurements of your own",
                            "pipeweaver costdb import examples/measured-gemm.csv --device h100_sxm --out own.sqlite"},
                           {"The same with their origin, zipped",
                            "pipeweaver costdb import examples/measured-gemm.csv --device h100_sxm "
                            "--origin profiler --licence CC0 --out own.sqlite.gz"},
                           {"What a trace's kernels are",
                            "pipeweaver costdb import --trace examples/trace.json --out traced.sqlite"}},
              .files = {},
              .see_also = {"pipeweaver costdb query", "costdb/README.md"}});
    command->callback([options] { import(*options); });
}

}  // namespace pipeweaver::apps
