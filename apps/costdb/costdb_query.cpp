// pipeweaver costdb query: a table of operators in, their times out.
#include "apps/command_line.hpp"
#include "apps/costdb/costdb_commands.hpp"
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/query.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <string>

namespace pipeweaver::apps {

namespace {

struct Query {
    explicit Query(CLI::App& app) : options(app) {
        options.group("The question");
        options.text("device", device, "DEVICE", "a100_sxm, h100_sxm, h200_sxm, b200, ... or an alias");
        options.require();
        options.text("op", op, fmt::format("{}", fmt::join(costdb::query_operators(), "|")), "what the rows are");
        options.require();
        options.text("input", input, "FILE", "queries, CSV; docs/formats.md has the columns");
        options.require();
        options.text("output", output, "FILE", "the queries with latency_us,basis,error_percent");
        options.writes();
        options.require();
        options.text("database", database, "FILE", "a file of `costdb import`; default: the embedded tables");
    }

    void run() const {
        options.apply();
        const auto costs =
            database.empty() ? costdb::CostDatabase::embedded(device) : costdb::CostDatabase::read(database, device);
        const auto queries = CsvTable::read(input);
        write_files({{output, costdb::answer_queries(costs, op, queries)}});
    }

    Options options;
    std::string device, op, input, output, database;
};

}  // namespace

void add_costdb_query(CLI::App& parent) {
    add_command<Query>(
        parent, "query", "cost of each operator of a CSV table",
        {.synopsis = "--device DEVICE --op OPERATOR --input FILE --output FILE [--database FILE]",
         .description = "Answers each row of a CSV table with the operator's time on the device, what it rests on "
                        "(exact, interpolated, extrapolated, modelled) and how wrong it may be.",
         .examples = {{"Matrix products",
                       "pipeweaver costdb query --device h100_sxm --op gemm "
                       "--input examples/gemm.csv --output gemm-times.csv"},
                      {"Attention on another device",
                       "pipeweaver costdb query --device a100_sxm --op attention "
                       "--input examples/attention.csv --output attention-times.csv"}},
         .see_also = {"pipeweaver costdb import", "pipeweaver list devices", "docs/formats.md"}});
}

}  // namespace pipeweaver::apps
