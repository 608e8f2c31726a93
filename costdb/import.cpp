#include "pipeweaver/costdb/import.hpp"

#include "costdb/device_facts.hpp"
#include "costdb/store.hpp"
#include "costdb/table_reader.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <algorithm>
#include <array>
#include <system_error>

namespace pipeweaver::costdb {

namespace fs = std::filesystem;

namespace {

/// One point for each key, with the median of its latencies. Returns how many points that cost.
template <class Point>
std::size_t merge_equal(std::vector<Point>& points) {
    const auto before = points.size();
    std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
        return std::tuple(key_of(a), a.latency_ns) < std::tuple(key_of(b), b.latency_ns);
    });
    std::vector<Point> merged;
    for (std::size_t first = 0; first < points.size();) {
        auto last = first;
        while (last < points.size() && key_of(points[last]) == key_of(points[first])) ++last;
        merged.push_back(points[first + (last - first - 1) / 2]);
        first = last;
    }
    points = std::move(merged);
    return before - points.size();
}

std::size_t merge_equal(Measurements& points) {
    return merge_equal(points.gemm) + merge_equal(points.attention) + merge_equal(points.collective) +
           merge_equal(points.point_to_point) + merge_equal(points.moe) + merge_equal(points.elementwise);
}

std::size_t count(const Measurements& points) {
    return points.gemm.size() + points.attention.size() + points.collective.size() + points.point_to_point.size() +
           points.moe.size() + points.elementwise.size();
}

/// What the names of the default folder's files say.
struct Origin {
    std::string_view prefix;  // of the file's name
    std::string_view device, origin, licence;
};
constexpr std::string_view aiconfigurator = "ai-dynamo/aiconfigurator operator database";
constexpr std::string_view simumax = "MooreThreads/SimuMax system files";
constexpr std::array<Origin, 8> origins{{
    {"a100_dgx_", "a100_sxm", "microsoft/vidur profiles", "MIT"},
    {"a100_nccl_", "a100_sxm", "VIA-Research/vTrain", "MIT"},
    {"a100_sxm_", "a100_sxm", aiconfigurator, "Apache-2.0"},
    {"a100_pcie_", "a100_pcie", simumax, "Apache-2.0"},
    {"h100_dgx_", "h100_sxm", "microsoft/vidur profiles", "MIT"},
    {"h100_sxm_", "h100_sxm", aiconfigurator, "Apache-2.0"},
    {"h200_sxm_", "h200_sxm", aiconfigurator, "Apache-2.0"},
    {"b200_", "b200", simumax, "Apache-2.0"},
}};

const Origin& origin_of(const fs::path& path) {
    const auto name = path.filename().string();
    for (const auto& origin : origins)
        if (name.starts_with(origin.prefix)) return origin;
    fail(ErrorKind::input,
         "{}: the name does not say the device; allowed begin with a100_sxm_, h100_sxm_, h200_sxm_, "
         "a100_dgx_, h100_dgx_, a100_nccl_, a100_pcie_, b200_",
         path.string());
}

bool is_table(const fs::path& path) {
    return path.extension() == ".csv" || (path.extension() == ".gz" && path.stem().extension() == ".csv");
}

}  // namespace

Imported import_tables(const std::vector<TableFile>& tables, const fs::path& output) {
    if (tables.empty()) fail(ErrorKind::input, "{}: no tables to import", output.string());
    Imported imported;
    std::vector<SourcedMeasurements> sources;
    for (const auto& table : tables) {
        auto text = read_file(table.path);
        SourcedMeasurements source{table.path.filename().string(), table.origin, table.licence, sha256(text), {}};
        source.points.device = facts_of(table.device).name;
        read_points(CsvTable(table.path.string(), std::move(text)), source.points);
        imported.duplicates += merge_equal(source.points);
        imported.points += count(source.points);
        ++imported.tables;
        sources.push_back(std::move(source));
    }
    write_files({{output, write_store(sources)}});
    return imported;
}

Imported import_folder(const fs::path& folder, const fs::path& output) {
    std::error_code error;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
    if (error) fail(ErrorKind::io, "{}: cannot be listed: {}", folder.string(), error.message());
    std::sort(paths.begin(), paths.end());
    std::vector<TableFile> tables;
    std::vector<std::string> left_out;
    for (const auto& path : paths) {
        if (!is_table(path)) {
            left_out.push_back(path.filename().string() + ": is no .csv or .csv.gz");
            continue;
        }
        const auto& origin = origin_of(path);
        tables.push_back({path, std::string(origin.device), std::string(origin.origin), std::string(origin.licence)});
    }
    if (tables.empty()) fail(ErrorKind::input, "{}: holds no .csv or .csv.gz", folder.string());
    auto imported = import_tables(tables, output);
    imported.left_out = std::move(left_out);
    return imported;
}

}  // namespace pipeweaver::costdb
