// pipeweaver costdb import: measurements in, a cost database out.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "apps/costdb/costdb_commands.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "pipeweaver/costdb/trace.hpp"
#include "pipeweaver/measured/import_run.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

namespace {

// What the command is asked for.
struct ImportAsked {
    std::string folder, device, origin = "own measurement", licence = "unstated", output, into;
    std::string trace, kernels, json;
    std::string plan, model, cluster, batch;  // of a measured run
    std::int64_t replica = 0;
    std::int64_t gpus_per_node = 8;
    std::vector<std::string> files;
};

void check(const ImportAsked& asked) {
    const int inputs = (asked.folder.empty() ? 0 : 1) + (asked.files.empty() ? 0 : 1) + (asked.trace.empty() ? 0 : 1);
    if (!asked.plan.empty()) {
        if (asked.files.empty() || inputs != 1)
            fail(ErrorKind::input, "--measured: needs what the ranks recorded, timings or traces, and nothing else");
        return;
    }
    for (const auto& [name, value] : {std::pair("--model", &asked.model), std::pair("--cluster", &asked.cluster),
                                      std::pair("--batch", &asked.batch)})
        if (!value->empty()) fail(ErrorKind::input, "{}: is for --measured only", name);
    if (inputs != 1) fail(ErrorKind::input, "costdb import: give one of --default FOLDER, --trace FILE and tables");
    if (!asked.output.empty() && !asked.into.empty())
        fail(ErrorKind::input, "--into: adds to a database, --out writes a new one; give one of them");
    if (!asked.folder.empty() && asked.output.empty())
        fail_missing("--out FOLDER", "a database for each device to write");
    if (asked.trace.empty() && asked.output.empty() && asked.into.empty())
        fail_missing("--out FILE", "a new database to write; --into adds to one");
    for (const auto& [name, value] : {std::pair("--kernels", &asked.kernels), std::pair("--json", &asked.json)})
        if (!value->empty() && asked.trace.empty()) fail(ErrorKind::input, "{}: is for --trace only", name);
    if (asked.gpus_per_node < 1 || asked.gpus_per_node > 1024)
        fail(ErrorKind::input, "--gpus-per-node: {}", must_be(asked.gpus_per_node, a_whole_number(1, 1024)));
}

void print(const costdb::Imported& done, const ImportAsked& asked) {
    constexpr std::size_t most_outliers = 5;
    for (const auto& left_out : done.left_out) print_on_stderr(fmt::format("left out: {}\n", left_out));
    for (std::size_t i = 0; i < done.outliers.size() && i < most_outliers; ++i)
        print_on_stderr(fmt::format("kept, but looks wrong: {}\n", done.outliers[i]));
    if (done.outliers.size() > most_outliers)
        print_on_stderr(fmt::format("kept, but look wrong: {} more\n", done.outliers.size() - most_outliers));
    print_text("{} tables, {} points, {} duplicates merged, {} outliers kept", done.tables, done.points,
               done.duplicates, done.outliers.size());
    if (done.thinned > 0) print_text(", {} thinned out", done.thinned);
    if (!asked.into.empty()) print_text(", {} tables replaced, {} unchanged", done.replaced, done.unchanged);
    print_text(" -> {}\n", asked.into.empty() ? asked.output : asked.into);
}

void store(const std::vector<costdb::TableFile>& tables, const ImportAsked& asked) {
    print(asked.into.empty() ? costdb::import_tables(tables, asked.output) : costdb::add_tables(tables, asked.into),
          asked);
}

// Cut to `width` bytes, never inside a letter of several.
std::string cut(const std::string& name, std::size_t width) {
    if (name.size() <= width) return name;
    auto end = width - 3;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
    return name.substr(0, end) + "...";
}

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

std::size_t points_of(const costdb::TraceReport& report) {
    return report.points.gemm.size() + report.points.attention.size() + report.points.collective.size();
}

nlohmann::ordered_json kernel_json(const costdb::KernelRow& row) {
    nlohmann::ordered_json json{{"name", row.name},
                                {"kind", row.is_copy ? "copy" : "kernel"},
                                {"operator", name_of(row.which)},
                                {"mapped", row.why_not.empty()},
                                {"why_not", nullptr},
                                {"count", row.count},
                                {"total_ns", row.total_ns}};
    if (!row.why_not.empty()) json["why_not"] = row.why_not;
    return json;
}

// Longest first; every kernel of the trace is in one of the rows.
void print_trace_report(const costdb::TraceReport& report) {
    TextTable table(
        {{"total ms", false, 12}, {"count", false, 8}, {"operator", true, 12}, {"mapped", true, 6}, {"kernel", true}});
    for (const auto& row : report.rows) {
        table.add({fmt::format("{:.3f}", milliseconds(row.total_ns)), std::to_string(row.count),
                   std::string(name_of(row.which)), row.why_not.empty() ? "yes" : "no", cut(row.name, 90)});
        if (!row.why_not.empty()) table.add({"", "", "", "", row.why_not});
    }
    print_text("{}", table.text());
    print_text("\n{:>12.3f} {:>9}  kernels\n{:>12.3f} {:>9}  copies\n{:>12.3f} {:>9}  of these mapped, to {} points\n",
               milliseconds(report.kernels_ns), report.kernels, milliseconds(report.copies_ns), report.copies,
               milliseconds(report.mapped_ns), report.mapped, points_of(report));
    print_text("{} events on '{}', the file read {} times\n", report.events,
               report.product.empty() ? "(no device stated)" : report.product, report.readings);
}

// The same as JSON, format pipeweaver-trace-report/1.
std::string trace_report_json(const costdb::TraceReport& report) {
    nlohmann::ordered_json json{{"format", "pipeweaver-trace-report/1"},
                                {"device", report.product},
                                {"sha256", report.sha256},
                                {"events", report.events},
                                {"kernels", report.kernels},
                                {"kernels_ns", report.kernels_ns},
                                {"copies", report.copies},
                                {"copies_ns", report.copies_ns},
                                {"mapped", report.mapped},
                                {"mapped_ns", report.mapped_ns},
                                {"points", points_of(report)},
                                {"rows", nlohmann::ordered_json::array()}};
    for (const auto& row : report.rows) json["rows"].push_back(kernel_json(row));
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void import_trace(const ImportAsked& asked) {
    const bool stores = !asked.output.empty() || !asked.into.empty();
    const auto report = costdb::read_trace(
        asked.trace, {asked.gpus_per_node, asked.kernels, stores ? std::optional(asked.device) : std::nullopt});
    print_trace_report(report);
    if (stores && costdb::has_points(report.points))
        store({{asked.trace, asked.device, asked.origin, asked.licence, &report}}, asked);
    else if (stores)
        print_text("no points: nothing is written\n");
    if (!asked.json.empty()) write_files({{asked.json, trace_report_json(report)}});
}

void import_measured(const ImportAsked& asked, const Executor& execute) {
    const auto done = measured::import_run(
        {asked.plan, asked.files, asked.replica, asked.model, asked.cluster, asked.batch, asked.output, asked.into},
        execute);
    print_text("{} on {}, {} steps: passes beside the plan, and beside the tables from now on\n", done.model,
               done.device, done.steps);
    TextTable table({{"module", true, 22},
                     {"direction", true, 10},
                     {"planned", false, 14},
                     {"measured", false, 12},
                     {"factor", false, 12}},
                    0);
    for (const auto& one : done.factors)
        table.add({one.module, one.backward ? "backward" : "forward", human(one.planned),
                   fmt::format("x{:.3f}", one.fitted), fmt::format("{:.3f}", one.factor)});
    print_text("{}", table.text());
    for (const auto& [rank, factor] : done.slow_ranks)
        print_text("slow: rank {} takes {:.3f} times what its peers take; its times count without that\n", rank,
                   factor);
    print_text("-> {}\n", done.output);
}

void import(const ImportAsked& asked, const Executor& execute) {
    check(asked);
    if (!asked.plan.empty()) {
        import_measured(asked, execute);
    } else if (!asked.trace.empty()) {
        import_trace(asked);
    } else if (asked.folder.empty()) {
        std::vector<costdb::TableFile> tables;
        for (const auto& file : asked.files) tables.push_back({file, asked.device, asked.origin, asked.licence});
        store(tables, asked);
    } else {
        print(costdb::import_folder(asked.folder, asked.output), asked);
    }
}

struct Import {
    explicit Import(CLI::App& app) : options(app) {
        add_operands(app, "tables", asked.files, "FILE",
                     "CSV tables or nccl-tests output, gzip allowed; with --measured what each rank recorded");
        options.group("The database");
        options.text("default", asked.folder, "DIR", "tables whose names say the device; --out is a folder, too");
        options.text("device", asked.device, "DEVICE", "device of the measurements, where they do not name it");
        options.text("origin", asked.origin, "TEXT", "who measured them (default: own measurement)");
        options.text("licence", asked.licence, "TEXT", "of the numbers (default: unstated)");
        options.text("out", asked.output, "FILE", "database to write; zipped if it ends in .gz");
        options.writes();
        options.text("into", asked.into, "FILE", "database to add to; what is added answers first");
        options.writes();
        options.group("Traces");
        options.text("trace", asked.trace, "FILE", "a PyTorch profiler trace, .json or .json.gz");
        options.text("kernels", asked.kernels, "FILE", "CSV of all its kernels, in order on each stream");
        options.writes();
        options.text("json", asked.json, "FILE", "the report on it as JSON");
        options.writes();
        add_number(app, "gpus-per-node", asked.gpus_per_node, "of the machine that was traced (default: 8)", "Traces");
        options.group("A measured run");
        options.text("measured", asked.plan, "DIR", "the folder of the plan that was run");
        options.integer("replica", asked.replica, 0, 1'000'000, "which of its replicas recorded (default 0)");
        options.text("model", asked.model, "MODEL", "the plan's model, where it is a file");
        options.text("cluster", asked.cluster, "CLUSTER", "the plan's cluster, where it is a file");
        options.text("batch", asked.batch, "FILE", "the plan's batch, where it lies elsewhere now");
    }

    void run() const {
        options.apply();
        import(asked, limits.executor());
    }

    Options options;
    Limits limits;
    ImportAsked asked;
};

}  // namespace

void add_costdb_import(CLI::App& parent) {
    add_command<Import>(
        parent, "import", "build a cost database from measurements, or add to one",
        {.synopsis = "FILE... [--device DEVICE] (--out FILE | --into FILE) | --trace FILE [OPTION...] | "
                     "--default DIR --out FILE | --measured DIR FILE... (--out FILE | --into FILE)",
         .description =
             "Builds a cost database from measurements, or adds to one. A table's columns say what was measured; "
             "equal points are merged. Output of nccl-tests is taken as it was printed. Of a trace, every kernel "
             "is listed with what it was taken for; operators whose shapes it has become points.\n"
             "With --measured a run that was recorded says by which factor each module's passes differ from the plan; "
             "plans with these costs have them.",
         .examples = {{"Measurements of your own",
                       "pipeweaver costdb import examples/measured-gemm.csv --device h100_sxm --out own.sqlite"},
                      {"The same with their origin, zipped",
                       "pipeweaver costdb import examples/measured-gemm.csv --device h100_sxm "
                       "--origin profiler --licence CC0 --out own.sqlite.gz"},
                      {"What a trace's kernels are",
                       "pipeweaver costdb import --trace examples/trace.json --out traced.sqlite"}},
         .see_also = {"pipeweaver costdb query", "costdb/README.md"}});
}

}  // namespace pipeweaver::apps
