// pipeweaver bench accuracy: predictions beside measured runs by device, number format and stack; an older build's
// beside this one's.
#include "pipeweaver/validation/accuracy.hpp"

#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "apps/errors_json.hpp"
#include "bench/benches.hpp"
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::bench {

using namespace apps;

namespace {

using validation::Accuracy;
using validation::Errors;
using validation::RowError;
using validation::StackErrors;

std::string kind_of(const StackErrors& group) {
    return group.multimodal ? "multimodal" : group.experts ? "experts" : "dense";
}

// All rows of several tables, and where each stands.
struct MeasuredRuns {
    std::vector<validation::PublishedRun> runs;
    std::vector<std::optional<double>> before;
    std::vector<std::string> places;  // FILE:LINE
};

struct BenchAccuracy {
    explicit BenchAccuracy(CLI::App& app) : options(app) {
        add_operands(app, "runs", files, "RUNS.csv", "measured runs; docs/formats.md has the columns");
        options.group("Input");
        options.text("before", before, "FILE,...",
                     "what `pipeweaver validate RUNS.csv --out FILE` of another build wrote, one of each table");
        options.group("Output");
        options.integer("worst", worst, 0, 100'000, "rows that are told, the farthest first (default 10)");
        console.add_to(app);
    }

    void run() {
        options.apply();
        if (files.empty()) fail_missing("RUNS.csv", "tables of measured runs");
        read();
        const auto predictions = validation::predict_all(rows.runs);
        const Accuracy accuracy = accuracy_of(rows.runs, predictions, rows.before);
        if (console.json) return print_json(accuracy);
        fmt::print("{:<20} {:<5} {:<22} {:<10} {:>5} {:>6} {:>6} {:>6} {:>6}", "|error| in percent", "", "stack",
                   "network", "rows", "MAPE", "p90", "max", "bias");
        if (!rows.before.empty())
            fmt::print("   {:>5} {:>7} {:>6} {:>7} {:>6}", "both", "before", "bias", "now", "bias");
        fmt::print("\n");
        for (const StackErrors& group : accuracy.stacks) print(group);
        fmt::print("\n");
        for (const StackErrors& group : accuracy.devices) print(group);
        fmt::print("\n{} of {} rows predicted, {} of them measured\n", accuracy.predicted, rows.runs.size(),
                   accuracy.rows.size());
        print_one_alone(accuracy);
        print_worst(accuracy);
    }

private:
    void read() {
        std::vector<std::string> older;
        for (const std::string& one : parts_of(before))
            if (!one.empty()) older.push_back(one);
        if (!older.empty() && older.size() != files.size())
            fail(ErrorKind::input, "--before: has {} tables, allowed is one for each of {}", older.size(),
                 files.size());
        for (std::size_t i = 0; i < files.size(); ++i) {
            const auto table = CsvTable::read(files[i]);
            for (auto& run : validation::read_published_runs(table)) rows.runs.push_back(std::move(run));
            for (std::size_t row = 0; row < table.rows(); ++row)
                rows.places.push_back(fmt::format("{}:{}", table.name(), table.line(row)));
            if (older.empty()) continue;
            for (const auto& time : validation::predicted_before(table, CsvTable::read(older[i])))
                rows.before.push_back(time);
        }
    }

    void print(const StackErrors& group) const {
        const Errors& now = group.now;
        fmt::print("{:<20} {:<5} {:<22} {:<10} {:>5}", group.device, group.products,
                   group.stack.empty() ? "all" : group.stack, kind_of(group), now.rows);
        if (now.rows > 0)
            fmt::print(" {:>6.1f} {:>6.1f} {:>6.1f} {:>+6.1f}", now.mean_percent, now.p90_percent, now.max_percent,
                       now.bias_percent);
        if (group.before.rows > 0)
            fmt::print("   {:>5} {:>7.1f} {:>+6.1f} {:>7.1f} {:>+6.1f}", group.before.rows, group.before.mean_percent,
                       group.before.bias_percent, group.now_of_both.mean_percent, group.now_of_both.bias_percent);
        fmt::print("\n");
    }

    void print_one_alone(const Accuracy& accuracy) const {
        if (rows.before.empty()) return;
        fmt::print("{} rows are predicted now alone, {} before alone{}\n", accuracy.now_alone.size(),
                   accuracy.before_alone.size(), accuracy.before_alone.empty() ? "" : ":");
        for (const std::size_t row : accuracy.before_alone) fmt::print("  {}\n", name_of(row));
    }

    void print_worst(const Accuracy& accuracy) const {
        const std::size_t many = std::min(static_cast<std::size_t>(worst), accuracy.rows.size());
        if (many == 0) return;
        fmt::print("\nthe farthest, in percent:\n");
        for (std::size_t i = 0; i < many; ++i) {
            const RowError& one = accuracy.rows[i];
            fmt::print("{:>+7.1f}{}  {}\n", 100 * one.now,
                       one.before ? fmt::format(" (before {:+.1f})", 100 * *one.before) : "", name_of(one.row));
        }
    }

    std::string name_of(std::size_t row) const {
        const auto& run = rows.runs[row];
        return fmt::format("{} {} on {} {} ({})", rows.places[row], run.model, run.gpus.value_or(0), run.gpu,
                           run.source);
    }

    static nlohmann::ordered_json to_json(const std::vector<StackErrors>& groups) {
        auto list = nlohmann::ordered_json::array();
        for (const StackErrors& group : groups) {
            nlohmann::ordered_json json{{"device", group.device},  {"products", group.products},
                                        {"stack", group.stack},    {"network", kind_of(group)},
                                        {"rows", group.predicted}, {"now", errors_json(group.now)}};
            if (group.before.rows > 0) {
                json["before"] = errors_json(group.before);
                json["now_of_both"] = errors_json(group.now_of_both);
            }
            list.push_back(std::move(json));
        }
        return list;
    }

    nlohmann::ordered_json places(const std::vector<std::size_t>& some) const {
        auto list = nlohmann::ordered_json::array();
        for (const std::size_t row : some) list.push_back(rows.places[row]);
        return list;
    }

    void print_json(const Accuracy& accuracy) const {
        auto list = nlohmann::ordered_json::array();
        for (const RowError& one : accuracy.rows) {
            nlohmann::ordered_json json{{"row", rows.places[one.row]}, {"error", one.now}};
            if (one.before) json["error_before"] = *one.before;
            list.push_back(std::move(json));
        }
        nlohmann::ordered_json json{{"rows", rows.runs.size()}, {"predicted", accuracy.predicted}};
        json["stacks"] = to_json(accuracy.stacks);
        json["devices"] = to_json(accuracy.devices);
        json["now_alone"] = places(accuracy.now_alone);
        json["before_alone"] = places(accuracy.before_alone);
        json["farthest"] = list;
        fmt::print("{}\n", json.dump());
    }

    Options options;
    std::vector<std::string> files;
    std::string before;
    std::int64_t worst = 10;
    Console console;
    MeasuredRuns rows;
};

}  // namespace

void add_accuracy(CLI::App& program) {
    add_command<BenchAccuracy>(
        program, "accuracy", about_bench("accuracy"),
        {.synopsis = "RUNS.csv... [--before FILE,...] [OPTION...]",
         .description = "Predicts measured runs, and says by device, number format and stack (the recipe of the row's "
                        "source) how far off the predictions are, and which rows are off the most.\n"
                        "To hold another build against this one, let it write its table (validate RUNS.csv --out "
                        "BEFORE.csv) and give it as --before: both are then told for the rows that both predict.",
         .examples = {{"Three rows", "pipeweaver bench accuracy examples/runs.csv"},
                      {"All of them, for a program to read", "pipeweaver bench accuracy examples/runs.csv --json"}},
         .see_also = {"pipeweaver validate", "docs/accuracy.md"}});
}

}  // namespace pipeweaver::bench
