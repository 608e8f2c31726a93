#include "pipeweaver/costdb/import.hpp"

#include "costdb/import/gpu_names.hpp"
#include "costdb/import/nccl_tests.hpp"
#include "costdb/import/outliers.hpp"
#include "costdb/import/table_reader.hpp"
#include "costdb/import/thinning.hpp"
#include "costdb/store/merge.hpp"
#include "costdb/store/store.hpp"
#include "costdb/store/store_file.hpp"
#include "costdb/tables/device_facts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <system_error>

namespace pipeweaver::costdb {

namespace fs = std::filesystem;

namespace {

/// What the names of the default folder's files say; the first that fits.
struct Origin {
    std::string_view prefix;  // of the file's name
    std::string_view device, origin, licence;
    bool thinned = false;
    std::string_view left_out{};  // why; empty: it is not
    bool throttled = false;       // TableFile::throttled
};
constexpr std::string_view aiconfigurator = "ai-dynamo/aiconfigurator operator database";
constexpr std::string_view simumax = "MooreThreads/SimuMax system files";
constexpr std::array<Origin, 13> origins{{
    {"a100_dgx_", "a100_sxm", "microsoft/vidur profiles", "MIT"},
    {"a100_nccl_", "a100_sxm", "VIA-Research/vTrain", "MIT"},
    {"a100_sxm_", "a100_sxm", aiconfigurator, "Apache-2.0"},
    {"a100_pcie_", "a100_pcie", simumax, "Apache-2.0"},
    {"h100_dgx_", "h100_sxm", "microsoft/vidur profiles", "MIT"},
    {"h100_sxm_", "h100_sxm", aiconfigurator, "Apache-2.0"},
    {"h200_sxm_", "h200_sxm", aiconfigurator, "Apache-2.0"},
    {"b200_sxm_", "b200", aiconfigurator, "Apache-2.0", true},
    {"b300_sxm_", "b300", aiconfigurator, "Apache-2.0", true},
    {"gb200_", "gb200", aiconfigurator, "Apache-2.0", true, {}, true},
    {"gb300_", "gb300", aiconfigurator, "Apache-2.0", true},
    {"b200_gemm_", "b200", simumax, "Apache-2.0", false,
     "48 shapes of b200_sxm_gemm that take 1.0 to 1.8 times as long; two levels in one table would rank no shapes"},
    {"b200_", "b200", simumax, "Apache-2.0"},
}};

const Origin& origin_of(const fs::path& path) {
    const auto name = path.filename().string();
    for (const auto& origin : origins)
        if (name.starts_with(origin.prefix)) return origin;
    fail(ErrorKind::input,
         "{}: the name does not say the device; allowed begin with a100_sxm_, h100_sxm_, h200_sxm_, "
         "a100_dgx_, h100_dgx_, a100_nccl_, a100_pcie_, b200_, b300_sxm_, gb200_, gb300_",
         path.string());
}

bool is_table(const fs::path& path) {
    return path.extension() == ".csv" || (path.extension() == ".gz" && path.stem().extension() == ".csv");
}

/// Reads the points of a table into `source`, whatever its format.
void read_table(const TableFile& table, SourcedMeasurements& source, Imported& imported) {
    auto text = read_file(table.path);
    const auto name = table.path.string();
    source.sha256 = sha256(text);
    if (is_nccl_tests(text)) {
        const auto done = read_nccl_tests(name, text, source.points);
        source.points.device = device_of(name, table.device, done.product);
        if (done.left_out > 0)
            imported.left_out.push_back(fmt::format("{}: {} rows of no size or type that a table holds",
                                                    table.path.filename().string(), done.left_out));
        return;
    }
    if (table.device.empty()) fail(ErrorKind::input, "{}: missing --device DEVICE: tables do not name theirs", name);
    source.points.device = facts_of(table.device).name;
    read_points(CsvTable(name, std::move(text)), source.points);
}

std::vector<SourcedMeasurements> read_tables(const std::vector<TableFile>& tables, Imported& imported) {
    std::vector<SourcedMeasurements> sources;
    for (const auto& table : tables) {
        SourcedMeasurements source{table.path.filename().string(), table.origin, table.licence, {}, {}};
        if (table.trace != nullptr) {
            source.sha256 = table.trace->sha256;
            source.points = table.trace->points;
            source.points.device = device_of(table.path.string(), table.device, table.trace->product);
        } else {
            read_table(table, source, imported);
        }
        if (table.thinned) imported.thinned += thin(source.points, table.throttled);
        imported.duplicates += merge_equal(source.points);
        imported.points += count_points(source.points);
        const auto found = outliers(source.points);
        imported.outliers.insert(imported.outliers.end(), found.begin(), found.end());
        ++imported.tables;
        sources.push_back(std::move(source));
    }
    return sources;
}

bool same_place(const SourcedMeasurements& a, const SourcedMeasurements& b) {
    return a.points.device == b.points.device && a.file == b.file;
}

bool same_source(const SourcedMeasurements& a, const SourcedMeasurements& b) {
    return same_place(a, b) && a.sha256 == b.sha256 && a.origin == b.origin && a.licence == b.licence;
}

}  // namespace

Imported import_tables(const std::vector<TableFile>& tables, const fs::path& output) {
    if (tables.empty()) fail(ErrorKind::input, "{}: no tables to import", output.string());
    Imported imported;
    write_files({{output, write_store(read_tables(tables, imported))}});
    return imported;
}

Imported add_tables(const std::vector<TableFile>& tables, const fs::path& database) {
    if (tables.empty()) fail(ErrorKind::input, "{}: no tables to import", database.string());
    Imported imported;
    auto added = read_tables(tables, imported);
    const StoreFile file(database);
    auto sources = read_sources(database.string(), file.read());
    std::vector<SourcedMeasurements> news;
    for (auto& source : added) {
        const auto is_there = [&](const auto& old) { return same_source(old, source); };
        if (std::any_of(sources.begin(), sources.end(), is_there)) {
            ++imported.unchanged;
            continue;
        }
        imported.replaced += std::erase_if(sources, [&](const auto& old) { return same_place(old, source); });
        news.push_back(std::move(source));
    }
    if (news.empty()) return imported;
    news.insert(news.end(), std::make_move_iterator(sources.begin()), std::make_move_iterator(sources.end()));
    file.replace(write_store(news));
    return imported;
}

namespace {

// Those of the run, then the others.
std::vector<PassFactor> with_older(std::vector<PassFactor> factors, const std::vector<PassFactor>& older) {
    for (const PassFactor& old : older) {
        const bool replaced = std::any_of(factors.begin(), factors.end(), [&](const PassFactor& one) {
            return one.model == old.model && one.module == old.module && one.backward == old.backward;
        });
        if (!replaced) factors.push_back(old);
    }
    return factors;
}

std::vector<SourcedMeasurements> with_run(const MeasuredRun& run, std::vector<SourcedMeasurements> sources) {
    SourcedMeasurements own{run.file, "measured run", "own", run.sha256, {}};
    own.points.device = run.device;
    own.points.pass_factors = run.factors;
    for (const auto& source : sources) {
        if (source.points.device != run.device) continue;
        own.points.in_situ = source.points.in_situ;
        own.points.pass_factors = with_older(run.factors, source.points.pass_factors);
    }
    std::erase_if(sources, [&](const auto& old) { return same_place(old, own); });
    sources.insert(sources.begin(), std::move(own));
    return sources;
}

bool is_same(const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    return fs::equivalent(a, b, ignored);
}

}  // namespace

void write_measured_run(const MeasuredRun& run, const fs::path& base, const fs::path& output) {
    if (base.empty()) return static_cast<void>(write_files({{output, write_store(with_run(run, {}))}}));
    if (is_same(base, output)) {
        const StoreFile file(output);
        file.replace(write_store(with_run(run, read_sources(output.string(), file.read()))));
        return;
    }
    write_files({{output, write_store(with_run(run, read_sources(base.string(), read_file(base))))}});
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
        if (!origin.left_out.empty()) {
            left_out.push_back(fmt::format("{}: {}", path.filename().string(), origin.left_out));
            continue;
        }
        tables.push_back({path, std::string(origin.device), std::string(origin.origin), std::string(origin.licence),
                          nullptr, origin.thinned || contains(path.filename().string(), "_gdn"), origin.throttled});
    }
    if (tables.empty()) fail(ErrorKind::input, "{}: holds no .csv or .csv.gz", folder.string());
    Imported imported;
    std::map<std::string, std::vector<SourcedMeasurements>> by_device;
    for (auto& source : read_tables(tables, imported)) by_device[source.points.device].push_back(std::move(source));
    std::vector<FileToWrite> files;
    for (const auto& [device, sources] : by_device)
        files.push_back({output / (device + ".sqlite.gz"), write_store(sources)});
    write_files(files);
    imported.left_out = std::move(left_out);
    return imported;
}

}  // namespace pipeweaver::costdb
