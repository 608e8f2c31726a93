// pipeweaver costdb export: measured points as the tables that `costdb import` reads.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "apps/costdb/costdb_commands.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/costdb/export.hpp"

#include <fmt/ranges.h>

namespace pipeweaver::apps {

namespace {

struct Export {
    explicit Export(CLI::App& app) : options(app) {
        options.group("What is exported");
        options.text("device", device, "DEVICE", "whose points");
        options.text("op", table, fmt::format("{}", fmt::join(costdb::exported_tables(), "|")), "which table");
        options.text("database", database, "FILE", "a file of `costdb import` (default: the embedded tables)");
        options.text("out", out, "FILE", "table to write; zipped if it ends in .gz");
        options.writes();
    }

    void run() const {
        options.apply();
        require_given({{!device.empty(), "--device DEVICE", "whose points"},
                       {!table.empty(), "--op TABLE", "which table"},
                       {!out.empty(), "--out FILE", "a table to write"}});
        const auto costs =
            database.empty() ? costdb::CostDatabase::embedded(device) : costdb::CostDatabase::read(database, device);
        const auto exported = costdb::export_table(costs.measurements(), table);
        write_files({{out, exported.csv}});
        print_text("{} points -> {}\n", exported.points, out);
        if (exported.left_out > 0)
            print_on_stderr(
                fmt::format("left out: {} points that were carried over from another device\n", exported.left_out));
    }

    Options options;
    std::string device, table, database, out;
};

}  // namespace

void add_costdb_export(CLI::App& parent) {
    add_command<Export>(
        parent, "export", "measured points as a table",
        {.synopsis = "--device DEVICE --op TABLE --out FILE [--database FILE]",
         .description = "Writes a device's measured points as a CSV table in the columns that `costdb import` reads, "
                        "each with its source, origin and licence.",
         .examples = {{"Attention of H100",
                       "pipeweaver costdb export --device h100_sxm --op attention --out h100-attention.csv"},
                      {"Matrix products, zipped",
                       "pipeweaver costdb export --device b200 --op gemm --out b200-gemm.csv.gz"}},
         .see_also = {"pipeweaver costdb import", "pipeweaver costdb stats", "include/pipeweaver/costdb/import.hpp"}});
}

}  // namespace pipeweaver::apps
