// pipeweaver costdb stats: what a cost database holds.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "apps/costdb/costdb_commands.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/stats.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::apps {

namespace {

nlohmann::ordered_json row_json(const std::string& device, const costdb::StatsRow& row) {
    nlohmann::ordered_json axes = nlohmann::ordered_json::object();
    for (const auto& axis : row.axes)
        axes[axis.name] = {{"low", axis.low}, {"high", axis.high}, {"values", axis.values}};
    return {
        {"device", device},       {"op", row.op},           {"kind", row.kind},     {"source", row.source},
        {"origin", row.origin},   {"licence", row.licence}, {"points", row.points}, {"transferred", row.transferred},
        {"axes", std::move(axes)}};
}

void print(const std::string& device, const costdb::StatsRow& row) {
    std::vector<std::string> axes;
    for (const auto& axis : row.axes)
        axes.push_back(axis.low == axis.high
                           ? fmt::format("{} {}", axis.name, axis.low)
                           : fmt::format("{} {}..{} ({})", axis.name, axis.low, axis.high, axis.values));
    print_text("{:<10} {:<11} {:<26} {:>6}  {}\n", device, row.op, row.kind, row.points, fmt::join(axes, ", "));
}

struct Stats {
    explicit Stats(CLI::App& app) : options(app) {
        options.group("The database");
        options.text("device", device, "DEVICE", "one device (default: all)");
        options.text("database", database, "FILE", "a file of `costdb import` (default: the embedded tables)");
        console.add_to(app);
    }

    void run() {
        options.apply();
        auto devices = device.empty() ? costdb::devices_with_points(database) : std::vector{device};
        nlohmann::ordered_json answer{{"format", "pipeweaver-costdb-stats/1"},
                                      {"rows", nlohmann::ordered_json::array()}};
        nlohmann::ordered_json run = nlohmann::ordered_json::object();
        for (const auto& name : devices) {
            const Stopwatch start;
            const auto costs =
                database.empty() ? costdb::CostDatabase::embedded(name) : costdb::CostDatabase::read(database, name);
            const double seconds = start.seconds();
            const auto rows = costdb::stats(costs.measurements());
            std::size_t points = 0;
            for (const auto& row : rows) {
                points += row.points;
                if (console.json)
                    answer["rows"].push_back(row_json(costs.device(), row));
                else
                    print(costs.device(), row);
            }
            if (!console.json) print_sources(costs.measurements());
            run[costs.device()] = {{"load_seconds", seconds}};
            console.say(fmt::format("{}: {} points loaded in {:.3f} s", costs.device(), points, seconds));
        }
        answer["run"] = std::move(run);
        if (console.json) print_json(answer);
    }

    static void print_sources(const costdb::Measurements& measurements) {
        for (const auto& origin : measurements.origins)
            print_text("{:<10} from {}: {} ({})\n", measurements.device, origin.file, origin.origin, origin.licence);
        if (const auto& factors = measurements.in_situ)
            print_text("{:<10} in a step: compute {:.3f}, tensor-parallel communication {:.3f}, {}\n",
                       measurements.device, static_cast<double>(factors->compute_ppm) / 1e6,
                       static_cast<double>(factors->tp_exposed_ppm) / 1e6, factors->note);
    }

    Options options;
    Console console;
    std::string device, database;
};

}  // namespace

void add_costdb_stats(CLI::App& parent) {
    add_command<Stats>(
        parent, "stats", "what a cost database holds",
        {.synopsis = "[--device DEVICE] [--database FILE] [OPTION...]",
         .description = "Prints for every device, operator, number format or kind and source how many points there are "
                        "and what range each axis has, with the number of different values; then the sources. How long "
                        "a device's tables took to load stands on stderr.",
         .examples = {{"What ships with the program", "pipeweaver costdb stats"},
                      {"One device, for a program to read", "pipeweaver costdb stats --device b200 --json"}},
         .see_also = {"pipeweaver costdb export", "pipeweaver costdb evaluate", "costdb/README.md"}});
}

}  // namespace pipeweaver::apps
