// pipeweaver costdb evaluate: how far the answers are off on points that they were not given.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "apps/costdb/costdb_commands.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/costdb/evaluate.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <limits>

namespace pipeweaver::apps {

namespace {

using OrderedJson = nlohmann::ordered_json;
using costdb::CostDatabase;
using costdb::EvaluationRow;

struct DeviceResult {
    std::string device;
    std::vector<costdb::LeftOut> points;
    std::vector<EvaluationRow> rows;
};

double rounded(double value) { return std::round(1000 * value) / 1000; }

OrderedJson row_json(const std::string& device, const EvaluationRow& row) {
    return {{"device", device},
            {"op", row.op},
            {"kind", row.kind},
            {"left_out", row.left_out},
            {"size", row.size},
            {"basis", row.basis},
            {"points", row.points},
            {"median_percent", rounded(row.error.median)},
            {"p90_percent", rounded(row.error.p90)},
            {"within", rounded(row.within)},
            {"printed_percent", rounded(row.printed)}};
}

// Under headings and with printed errors, or without both.
std::string rows_text(const std::vector<DeviceResult>& results, bool is_whole) {
    std::vector<TextTable::Column> columns{{"device", true, 10}, {"op", true, 10},  {"kind", true, 26},
                                           {"left", true, 7},    {"size", true, 5}, {"basis", true, 12}};
    for (const char* number : {"points", "median", "p90", "within %", "printed"}) columns.push_back({number, false, 7});
    if (!is_whole)
        for (auto& column : columns) column.heading.clear();
    TextTable table(std::move(columns), 1);
    const auto tenths = [](double percent) { return fmt::format("{:.1f}", percent); };
    for (const auto& result : results)
        for (const auto& row : result.rows)
            table.add({result.device, row.op, row.kind, row.left_out, row.size, row.basis, std::to_string(row.points),
                       tenths(row.error.median), tenths(row.error.p90), is_whole ? tenths(100 * row.within) : "",
                       is_whole ? tenths(row.printed) : ""});
    return table.text();
}

std::string points_csv(const std::vector<DeviceResult>& results) {
    std::string out = "device,op,kind,left_out,size,basis,truth_us,answer_us,printed_percent\n";
    for (const auto& result : results)
        for (const auto& p : result.points)
            out += fmt::format("{},{},{},{},{},{},{:.3f},{:.3f},{:.1f}\n", result.device, p.op, p.kind,
                               p.plane ? "planes" : "points", p.big ? "big" : "small", name_of(p.basis),
                               p.truth_ns / 1e3, p.answer_ns / 1e3, p.printed_percent);
    return out;
}

struct Evaluate {
    explicit Evaluate(CLI::App& app) : options(app) {
        options.group("What is evaluated");
        options.text("device", device, "DEVICE", "one device (default: every device with points)");
        options.text("op", op, "OPERATOR", "gemm, attention, collective, p2p, moe or gdn (default: all)");
        options.text("database", database, "FILE", "a file of `costdb import` (default: the embedded tables)");
        options.integer("folds", folds, 2, 1000, "parts that the points are left out in (default: 10)");
        options.integer("seed", seed, 0, std::numeric_limits<std::int64_t>::max(), "of the draw of parts (default: 1)");
        options.integer("threads", threads, 1, 1024, "threads (default: as many as the machine has)");
        options.group("A transfer");
        options.text("transfer", transfer, "DONOR:DEVICE",
                     "hide DEVICE's GEMMs but for a few and serve it from DONOR's table");
        options.integer("points", points, static_cast<std::int64_t>(costdb::fewest_measured), 1000,
                        "shapes that stay, chosen by the tool (default: 32)");
        options.group("The answer");
        options.text("out", out, "DIR", "also write evaluation.json and points.csv there");
        options.writes();
        console.add_to(app);
    }

    void run() {
        const Stopwatch start;
        options.apply();
        planner::SearchLimits limits;
        limits.threads = threads;
        OrderedJson answer{{"format", "pipeweaver-costdb-evaluation/1"}};
        std::vector<FileToWrite> files;
        if (transfer.empty())
            evaluate(answer, files, on_threads(limits.thread_count()));
        else
            try_transfer(answer);
        if (!out.empty()) {
            files.push_back({std::filesystem::path(out) / "evaluation.json", answer.dump(1) + "\n"});
            write_files(files);
        }
        if (!console.json) return;
        answer["run"] = {{"seconds", start.seconds()}, {"threads", limits.thread_count()}};
        print_json(answer);
    }

    CostDatabase opened(const std::string& name) const {
        return database.empty() ? CostDatabase::embedded(name) : CostDatabase::read(database, name);
    }

    void evaluate(OrderedJson& answer, std::vector<FileToWrite>& files, const Executor& execute) const {
        auto devices = costdb::devices_with_points(database);
        if (!device.empty()) devices = {opened(device).device()};
        std::vector<std::string> ops(costdb::evaluated_operators().begin(), costdb::evaluated_operators().end());
        if (!op.empty()) ops = {op};
        answer["folds"] = folds;
        answer["seed"] = seed;
        answer["rows"] = OrderedJson::array();
        std::vector<DeviceResult> results;
        for (const auto& name : devices) {
            const auto costs = opened(name);
            DeviceResult result{name, {}, {}};
            for (const auto& one : ops) {
                const auto found = costdb::evaluate(
                    costs, one, {static_cast<std::size_t>(folds), static_cast<std::uint64_t>(seed)}, execute);
                result.points.insert(result.points.end(), found.begin(), found.end());
            }
            result.rows = costdb::summary(result.points);
            for (const auto& row : result.rows) answer["rows"].push_back(row_json(name, row));
            results.push_back(std::move(result));
        }
        if (!out.empty()) files.push_back({std::filesystem::path(out) / "points.csv", points_csv(results)});
        if (console.json) return;
        for (DeviceResult& result : results)
            std::erase_if(result.rows, [](const auto& row) { return row.basis != "any" && row.size != "all"; });
        print_text("{}", rows_text(results, true));
    }

    void try_transfer(OrderedJson& answer) const {
        const auto colon = transfer.find(':');
        if (colon == std::string::npos)
            fail(ErrorKind::input, "--transfer: {}", must_be(transfer, "DONOR:DEVICE, such as a100_sxm:h100_sxm"));
        const auto donor = opened(transfer.substr(0, colon)), served = opened(transfer.substr(colon + 1));
        auto trial = costdb::try_transfer(donor, served, static_cast<std::size_t>(points));
        answer["donor"] = donor.device();
        answer["points"] = points;
        answer["rows"] = OrderedJson::array();
        answer["by_peak"] = OrderedJson::array();
        for (const auto& row : trial.rows) answer["rows"].push_back(row_json(served.device(), row));
        std::erase_if(trial.by_peak, [](const EvaluationRow& row) { return row.basis != "any"; });
        for (const auto& row : trial.by_peak) answer["by_peak"].push_back(row_json(served.device(), row));
        if (!console.json) print(trial, donor.device(), served.device());
    }

    static void print(const costdb::TransferTrial& trial, const std::string& donor, const std::string& served) {
        for (const auto& report : trial.reports)
            print_text(
                "{} -> {} {}: {} shapes measured, the others hidden; each of the measured left out: median "
                "{:.1f} %, p90 {:.1f} %\n",
                donor, served, name_of(report.dtype), report.measured, report.left_out.median, report.left_out.p90);
        print_text("hidden points, by the transfer:\n{}", rows_text({{served, {}, trial.rows}}, true));
        print_text("the same by {}'s times and the ratio of the peaks:\n{}", donor,
                   rows_text({{served, {}, trial.by_peak}}, false));
    }

    Options options;
    Console console;
    std::string device, op, database, transfer, out;
    std::int64_t folds = 10, seed = 1, points = 32, threads = 0;
};

}  // namespace

void add_costdb_evaluate(CLI::App& parent) {
    add_command<Evaluate>(
        parent, "evaluate", "how far answers are off on points that they were not given",
        {.synopsis = "[--device DEVICE] [--op OPERATOR] [--transfer DONOR:DEVICE] [--out DIR] [OPTION...]",
         .description =
             "Leaves points out of the tables, asks the rest for them, and compares: one part of the points after the "
             "other ('points'), and whole values of an axis ('planes': an n and a k of GEMMs, a sequence length of "
             "attention). Prints the error that half and nine of ten answers do not exceed, and how many of a hundred "
             "lie within the error that was printed with the answer. big: GEMMs with m >= 512 and mnk >= 2^33, "
             "attention above 200 us.\n"
             "--transfer hides a device's GEMM table but for a few shapes, serves the device from another's table as "
             "`costdb calibrate` does, and compares with what was hidden, beside plain scaling by the peaks.",
         .examples = {{"Matrix products of one device", "pipeweaver costdb evaluate --device b200 --op gemm"},
                      {"How well H100's table serves B200 after 32 measurements",
                       "pipeweaver costdb evaluate --transfer h100_sxm:b200 --points 32"}},
         .files = {{"DIR/evaluation.json", "pipeweaver-costdb-evaluation/1: the rows of --json"},
                   {"DIR/points.csv", "every point that was left out, with its answer"}},
         .see_also = {"pipeweaver costdb calibrate", "docs/costs.md", "costdb/README.md"}});
}

}  // namespace pipeweaver::apps
