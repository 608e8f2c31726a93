// pipeweaver bench costdb: how fast the cost database answers and loads, beside a binary search over the same points.
#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/benches.hpp"
#include "bench/measure.hpp"
#include "costdb/store/store.hpp"
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "pipeweaver/costdb/leave_out.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <unistd.h>

namespace pipeweaver::bench {

using namespace apps;

namespace {

using namespace costdb;

constexpr std::size_t queries_each = 4096;  // asked in turn, so that no answer is still in a register
constexpr int rounds = 9;
constexpr double seconds_each = 0.01;
constexpr std::size_t loaded_points = 20'000;

// The size that plans ask between the measured ones.
std::int64_t& running_size(GemmPoint& p) { return p.m; }
std::int64_t& running_size(AttentionPoint& p) { return p.seq_len; }
std::int64_t& running_size(CollectivePoint& p) { return p.message_bytes; }
std::int64_t& running_size(MoePoint& p) { return p.tokens; }

struct LookUps {
    std::string device, op, where;  // "at points" or "between"
    std::size_t points = 0;
    double lookups = 0, searches = 0;  // per second of CPU time, medians of the rounds
    double time_ratio = 0;             // a look-up's time over a search's, median of the rounds' ratios
};

// Look-ups and binary searches for the same keys alternately. `stray`: between the points instead of at them.
template <class Point>
LookUps measure(const CostDatabase& database, const char* op, const std::vector<Point>& points, bool stray) {
    using Key = decltype(key_of(points.front()));
    std::vector<Key> sorted;
    sorted.reserve(points.size());
    for (const Point& point : points) sorted.push_back(key_of(point));
    std::sort(sorted.begin(), sorted.end());
    Random random(1);
    std::vector<Key> keys;
    std::vector<decltype(query_of(points.front()))> queries;
    for (std::size_t i = 0; i < queries_each; ++i) {
        Point point = points[random.below(points.size())];
        // Up to a half more, in steps of 16 as training has them.
        if (auto& size = running_size(point); stray)
            size += std::max<std::int64_t>(1, size * static_cast<std::int64_t>(1 + random.below(31)) / 64 / 16 * 16);
        keys.push_back(key_of(point));
        queries.push_back(query_of(point));
    }
    std::int64_t sum = 0;
    std::size_t next = 0;
    const auto look_up = [&] { sum += database.cost(queries[next++ % queries_each]).duration.count(); };
    const auto search = [&] {
        sum += std::lower_bound(sorted.begin(), sorted.end(), keys[next++ % queries_each]) - sorted.begin();
    };
    std::vector<double> lookups, searches, ratios;
    for (int round = 0; round < rounds; ++round) {
        lookups.push_back(rate(look_up, seconds_each));
        searches.push_back(rate(search, seconds_each));
        ratios.push_back(searches.back() / lookups.back());
    }
    if (sum == 0) fail(ErrorKind::limit, "{}: all answers are 0", op);  // also keeps the work from being left out
    return {database.device(), op, stray ? "between" : "at points", points.size(), median(lookups), median(searches),
            median(ratios)};
}

template <class Point>
void add(const CostDatabase& database, const char* op, const std::vector<Point>& points, std::vector<LookUps>& into) {
    if (points.empty()) return;
    for (const bool stray : {false, true}) into.push_back(measure(database, op, points, stray));
}

struct Load {
    std::size_t points = 0;
    double seconds = 0;  // CPU time, median: a file of GEMMs to a database that answers
};

// A file of measurements as a user has them: GEMMs of the device, as many as a table of one's own may hold.
Load measure_load(const CostDatabase& database) {
    const auto& gemms = database.measurements().gemm;
    if (gemms.size() < loaded_points) return {};
    std::string table = "dtype,m,n,k,pass,latency_us\n";
    for (std::size_t i = 0; i < loaded_points; ++i) {
        const GemmPoint& p = gemms[i];
        table += fmt::format("{},{},{},{},{},{}\n", name_of(p.dtype), p.m, p.n, p.k, name_of(p.pass),
                             static_cast<double>(p.latency_ns) * 1e-3);
    }
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("pipeweaver-bench-{}", ::getpid());
    std::filesystem::create_directories(folder);
    write_files({{folder / "gemm.csv", table}});
    static_cast<void>(import_tables({{folder / "gemm.csv", database.device(), "bench", "bench"}}, folder / "b.sqlite"));
    const auto load = [&] { static_cast<void>(CostDatabase::read(folder / "b.sqlite", database.device())); };
    std::vector<double> seconds(rounds);
    for (double& one : seconds) one = 1 / rate(load, seconds_each);
    std::filesystem::remove_all(folder);
    return {loaded_points, median(seconds)};
}

struct BenchCostdb {
    explicit BenchCostdb(CLI::App& app) : options(app) {
        options.group("The benchmark");
        options.text("device", device, "DEVICE", "whose tables (default h100_sxm)");
        console.add_to(app);
    }

    void run() {
        options.apply();
        const auto database = CostDatabase::embedded(device);
        const auto& measured = database.measurements();
        std::vector<LookUps> results;
        add(database, "gemm", measured.gemm, results);
        add(database, "attention", measured.attention, results);
        std::vector<CollectivePoint> sweep;
        for (const auto& point : measured.collective)
            if (point.source == LinkSource::sweep) sweep.push_back(point);
        add(database, "collective", sweep, results);
        add(database, "moe", measured.moe, results);
        if (results.empty()) fail(ErrorKind::limit, "--device: {} has no tables to look up", database.device());
        const auto load = measure_load(database);
        console.json ? print_json(results, load) : print(results, load);
    }

    static void print(const std::vector<LookUps>& results, const Load& load) {
        fmt::print("{:<10} {:<11} {:<10} {:>7} {:>12} {:>16} {:>6}\n", "device", "operator", "asked", "points",
                   "ns a look-up", "ns a bin. search", "ratio");
        for (const LookUps& r : results)
            fmt::print("{:<10} {:<11} {:<10} {:>7} {:>12.0f} {:>16.0f} {:>6.2f}\n", r.device, r.op, r.where, r.points,
                       1e9 / r.lookups, 1e9 / r.searches, r.time_ratio);
        if (load.points > 0)
            fmt::print("\na file of {} points is loaded in {:.1f} ms\n", load.points, 1e3 * load.seconds);
    }

    static void print_json(const std::vector<LookUps>& results, const Load& load) {
        nlohmann::ordered_json json{{"lookups", nlohmann::ordered_json::array()}};
        for (const LookUps& r : results)
            json["lookups"].push_back({{"device", r.device},
                                       {"operator", r.op},
                                       {"asked", r.where},
                                       {"points", r.points},
                                       {"lookups_per_s", r.lookups},
                                       {"binary_searches_per_s", r.searches},
                                       {"time_over_binary_search", r.time_ratio}});
        if (load.points > 0) {
            json["loaded_points"] = load.points;
            json["load_seconds"] = load.seconds;
        }
        fmt::print("{}\n", json.dump());
    }

    Options options;
    Console console;
    std::string device = "h100_sxm";
};

}  // namespace

void add_costdb(CLI::App& program) {
    add_command<BenchCostdb>(
        program, "costdb", about_bench("costdb"),
        {.synopsis = "[--device DEVICE] [OPTION...]",
         .description = "Asks the embedded tables for random shapes, at measured points and between them, and searches "
                        "a sorted array of the same points' keys for the same shapes; by turns, in CPU time. 'ratio' "
                        "is a look-up's time over a binary search's. Then loads a file of 20,000 points.",
         .examples = {{"Look-ups of H100", "pipeweaver bench costdb"},
                      {"Of another device, for a program to read", "pipeweaver bench costdb --device a100_sxm --json"}},
         .see_also = {"pipeweaver costdb query"}});
}

}  // namespace pipeweaver::bench
