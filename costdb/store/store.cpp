#include "costdb/store/store.hpp"

#include "costdb/point_tables.hpp"
#include "costdb/tables/checks.hpp"
#include "pipeweaver/base/sqlite.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

namespace pipeweaver::costdb {

namespace {

constexpr std::int64_t application_id = 0x50574344;  // "PWCD"
constexpr std::int64_t schema_version = 3;
constexpr std::int64_t version_with_pass_factors = 4;  // of a database that has some
constexpr std::int64_t version_with_linear = 5;        // of a database that has linear attention; pass factors, too

const std::string schema = R"(
PRAGMA page_size = 4096;
CREATE TABLE source(
  id INTEGER PRIMARY KEY, device TEXT NOT NULL, file TEXT NOT NULL, origin TEXT NOT NULL, licence TEXT NOT NULL,
  sha256 TEXT NOT NULL, transferred_permille INTEGER NOT NULL) STRICT;
CREATE TABLE in_situ(
  device TEXT PRIMARY KEY, compute_ppm INTEGER NOT NULL, tp_exposed_ppm INTEGER NOT NULL, note TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
CREATE TABLE gemm(
  source INTEGER NOT NULL, dtype TEXT NOT NULL, pass TEXT NOT NULL, m INTEGER NOT NULL, n INTEGER NOT NULL,
  k INTEGER NOT NULL, latency_ns INTEGER NOT NULL,
  spread_permille INTEGER NOT NULL,
  PRIMARY KEY(source, dtype, pass, m, n, k)) STRICT, WITHOUT ROWID;
CREATE TABLE attention(
  source INTEGER NOT NULL, dtype TEXT NOT NULL, pass TEXT NOT NULL, causal INTEGER NOT NULL, head_dim INTEGER NOT NULL,
  kv_heads INTEGER NOT NULL, q_heads INTEGER NOT NULL, batch INTEGER NOT NULL, seq_len INTEGER NOT NULL,
  latency_ns INTEGER NOT NULL,
  spread_permille INTEGER NOT NULL,
  PRIMARY KEY(source, dtype, pass, causal, head_dim, kv_heads, q_heads, batch, seq_len)) STRICT, WITHOUT ROWID;
CREATE TABLE collective(
  source INTEGER NOT NULL, sweep TEXT NOT NULL, collective TEXT NOT NULL, dtype TEXT NOT NULL, gpus INTEGER NOT NULL,
  gpus_per_node INTEGER NOT NULL, message_bytes INTEGER NOT NULL, latency_ns INTEGER NOT NULL,
  spread_permille INTEGER NOT NULL,
  PRIMARY KEY(source, sweep, collective, dtype, gpus, gpus_per_node, message_bytes)) STRICT, WITHOUT ROWID;
CREATE TABLE point_to_point(
  source INTEGER NOT NULL, gpus_per_node INTEGER NOT NULL, message_bytes INTEGER NOT NULL, latency_ns INTEGER NOT NULL,
  spread_permille INTEGER NOT NULL,
  PRIMARY KEY(source, gpus_per_node, message_bytes)) STRICT, WITHOUT ROWID;
CREATE TABLE moe(
  source INTEGER NOT NULL, dtype TEXT NOT NULL, routing TEXT NOT NULL, hidden INTEGER NOT NULL, ffn INTEGER NOT NULL,
  top_k INTEGER NOT NULL, experts INTEGER NOT NULL, moe_tp INTEGER NOT NULL, moe_ep INTEGER NOT NULL,
  tokens INTEGER NOT NULL, latency_ns INTEGER NOT NULL,
  spread_permille INTEGER NOT NULL,
  PRIMARY KEY(source, dtype, routing, hidden, ffn, top_k, experts, moe_tp, moe_ep, tokens)) STRICT, WITHOUT ROWID;
CREATE TABLE elementwise(
  source INTEGER NOT NULL, kind TEXT NOT NULL, pass TEXT NOT NULL, traffic_bytes INTEGER NOT NULL,
  latency_ns INTEGER NOT NULL, spread_permille INTEGER NOT NULL,
  PRIMARY KEY(source, kind, pass, traffic_bytes)) STRICT, WITHOUT ROWID;
)";

// Of databases with measured runs alone.
const std::string pass_factor_schema = R"(
CREATE TABLE pass_factor(
  device TEXT NOT NULL, model TEXT NOT NULL, module TEXT NOT NULL, pass TEXT NOT NULL, factor_ppm INTEGER NOT NULL,
  steps INTEGER NOT NULL, PRIMARY KEY(device, model, module, pass)) STRICT, WITHOUT ROWID;
)";

const std::string linear_schema = R"(
CREATE TABLE gdn(
  source INTEGER NOT NULL, kernel TEXT NOT NULL, key_dim INTEGER NOT NULL, value_dim INTEGER NOT NULL,
  key_heads INTEGER NOT NULL, value_heads INTEGER NOT NULL, batch INTEGER NOT NULL, seq_len INTEGER NOT NULL,
  latency_ns INTEGER NOT NULL, spread_permille INTEGER NOT NULL,
  PRIMARY KEY(source, kernel, key_dim, value_dim, key_heads, value_heads, batch, seq_len)) STRICT, WITHOUT ROWID;
)";

const std::array<std::string, 3> sweeps{"sweep", "large", "nodes"};

// ---- a member as SQL holds it, and back

std::int64_t stored(std::int64_t value) { return value; }
std::int64_t stored(bool value) { return value ? 1 : 0; }
std::string_view stored(const std::string& value) { return value; }
std::string_view stored(LinkSource value) { return sweeps[static_cast<std::size_t>(value)]; }
template <class Enum>
std::string stored(Enum value) {
    return std::string(name_of(value));
}

/// Most rows have the name of the row before, which `value` is.
template <class Enum>
void read_name(const HandedRow& row, int column, const char* what, std::span<const std::string> names, Enum& value) {
    const std::string_view name = row.text(column);
    if (name != names[static_cast<std::size_t>(value)]) value = static_cast<Enum>(index_of(what, name, names));
}

void read(const HandedRow& row, int column, const char*, std::int64_t& value) { value = row.integer(column); }
void read(const HandedRow& row, int column, const char*, bool& value) { value = row.integer(column) != 0; }
void read(const HandedRow& row, int column, const char*, std::string& value) { value = row.text(column); }
void read(const HandedRow& row, int column, const char* what, LinkSource& value) {
    read_name(row, column, what, sweeps, value);
}
void read(const HandedRow& row, int column, const char* what, Dtype& value) {
    read_name(row, column, what, dtype_names(), value);
}
void read(const HandedRow& row, int column, const char* what, Pass& value) {
    read_name(row, column, what, pass_names(), value);
}
void read(const HandedRow& row, int column, const char* what, CollectiveKind& value) {
    read_name(row, column, what, collective_names(), value);
}
void read(const HandedRow& row, int column, const char* what, ElementwiseKind& value) {
    read_name(row, column, what, elementwise_names(), value);
}
void read(const HandedRow& row, int column, const char* what, LinearKernel& value) {
    read_name(row, column, what, linear_kernel_names(), value);
}

template <class Rows>
std::vector<std::string> column_names() {
    return std::apply([](const auto&... column) { return std::vector<std::string>{column.name...}; }, Rows::columns);
}

/// `point`: that of the row before, which becomes the row's.
template <class Rows>
void read_point(const HandedRow& row, typename Rows::Point& point) {
    int place = 0;
    std::apply([&](const auto&... column) { (read(row, place++, column.name, point.*column.member), ...); },
               Rows::columns);
}

template <class Rows>
void insert(const Sqlite& database, std::int64_t source, std::vector<typename Rows::Point> points) {
    std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return key_of(a) < key_of(b); });
    const auto columns = column_names<Rows>();
    std::string places = "?";
    for (std::size_t i = 0; i < columns.size(); ++i) places += ",?";
    Statement statement(
        database, fmt::format("INSERT INTO {}(source,{}) VALUES({})", Rows::table, fmt::join(columns, ","), places));
    for (const auto& point : points) {
        statement.bind(1, source);
        int place = 1;
        std::apply([&](const auto&... column) { (statement.bind(++place, stored(point.*column.member)), ...); },
                   Rows::columns);
        statement.step();
        statement.reset();
    }
}

void insert_in_situ(const Sqlite& database, const Measurements& points) {
    if (!points.in_situ) return;
    Statement row(database, "INSERT OR IGNORE INTO in_situ VALUES(?,?,?,?)");
    row.bind(1, points.device);
    row.bind(2, points.in_situ->compute_ppm);
    row.bind(3, points.in_situ->tp_exposed_ppm);
    row.bind(4, points.in_situ->note);
    row.step();
}

void select_in_situ(const std::string& name, const Sqlite& database, Measurements& into) {
    Statement row(database, "SELECT compute_ppm, tp_exposed_ppm, note FROM in_situ WHERE device = ?1");
    row.bind(1, into.device);
    if (!row.step()) return;
    into.in_situ = InSitu{row.integer(0), row.integer(1), std::string(row.text(2))};
    constexpr std::int64_t highest = 100'000'000;  // a hundred times
    for (const auto ppm : {into.in_situ->compute_ppm, into.in_situ->tp_exposed_ppm})
        if (ppm < 0 || ppm > highest)
            fail(ErrorKind::input, "{}: in_situ: a factor of {} is not possible", name, into.device);
}

void insert_pass_factors(const Sqlite& database, const Measurements& points) {
    for (const PassFactor& one : points.pass_factors) {
        Statement row(database, "INSERT OR IGNORE INTO pass_factor VALUES(?,?,?,?,?,?)");
        row.bind(1, points.device);
        row.bind(2, one.model);
        row.bind(3, one.module);
        row.bind(4, one.backward ? "backward" : "forward");
        row.bind(5, one.factor_ppm);
        row.bind(6, one.steps);
        row.step();
    }
}

void select_pass_factors(const std::string& name, const Sqlite& database, Measurements& into) {
    if (pragma(database, "user_version") < version_with_pass_factors) return;
    Statement row(database,
                  "SELECT model, module, pass, factor_ppm, steps FROM pass_factor WHERE device = ?1 "
                  "ORDER BY model, module, pass DESC");
    row.bind(1, into.device);
    while (row.step()) {
        into.pass_factors.push_back({std::string(row.text(0)), std::string(row.text(1)), row.text(2) == "backward",
                                     row.integer(3), row.integer(4)});
        constexpr std::int64_t highest = 1'000'000'000;  // a thousand times
        if (into.pass_factors.back().factor_ppm < 1 || into.pass_factors.back().factor_ppm > highest)
            fail(ErrorKind::input, "{}: pass_factor: a factor of {} is not possible", name, into.device);
    }
}

template <class Point>
bool is_sane(const Point& point) {
    const auto above_zero = [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::int64_t>) return value >= 1;
        return true;
    };
    return point.latency_ns >= 1 && point.latency_ns <= longest_measured_ns && point.spread_permille >= 0 &&
           std::apply([&](const auto&... value) { return (above_zero(value) && ...); }, key_of(point));
}

/// Whether a database of that version has the table.
template <class Rows>
bool has_table(std::int64_t version) {
    return !std::is_same_v<Rows, LinearRows> || version >= version_with_linear;
}

template <class Rows>
void select(const std::string& name, const Sqlite& database, std::int64_t source, Measurements& into) {
    auto& points = into.*Rows::points;
    typename Rows::Point point;
    point.origin = static_cast<std::int64_t>(into.origins.size()) - 1;
    const auto take = [&](const HandedRow& row) {
        read_point<Rows>(row, point);
        if (!is_sane(point))
            fail(ErrorKind::input, "{}: {}: a size or latency of source {} is not possible", name, Rows::table, source);
        points.push_back(point);
    };
    for_each_row(database, fmt::to_string(fmt::join(column_names<Rows>(), ",")),
                 fmt::format("{} WHERE source = ?1", Rows::table), source, take);
}

/// Sorts, and keeps of equal keys the first.
template <class Rows>
void keep_first(Measurements& in) {
    auto& points = in.*Rows::points;
    const auto before = [](const auto& a, const auto& b) { return key_of(a) < key_of(b); };
    // As those of one source are.
    const auto second = std::is_sorted_until(points.begin(), points.end(), before);
    if (std::is_sorted(second, points.end(), before))
        std::inplace_merge(points.begin(), second, points.end(), before);
    else
        std::stable_sort(points.begin(), points.end(), before);
    points.erase(
        std::unique(points.begin(), points.end(), [](const auto& a, const auto& b) { return key_of(a) == key_of(b); }),
        points.end());
}

const Sqlite::Wrong unusable{"is not a usable cost database", ErrorKind::input};

Sqlite open_store(const std::string& name, std::string_view bytes) {
    if (!bytes.starts_with(std::string_view("SQLite format 3\0", 16)))
        fail(ErrorKind::input, "{}: is not a cost database: not SQLite", name);
    Sqlite database(name, unusable, bytes);
    if (pragma(database, "application_id") != application_id)
        fail(ErrorKind::input, "{}: is not a cost database: its application id is not PWCD", name);
    if (const auto version = pragma(database, "user_version");
        version < schema_version || version > version_with_linear)
        fail(ErrorKind::input, "{}: is a cost database of version {}, this program reads versions {} to {}", name,
             version, schema_version, version_with_linear);
    return database;
}

/// The least that holds all of it.
std::int64_t version_of(const std::vector<SourcedMeasurements>& sources) {
    const auto any = [&](auto holds) { return std::any_of(sources.begin(), sources.end(), holds); };
    if (any([](const auto& source) { return !source.points.linear.empty(); })) return version_with_linear;
    const bool factors = any([](const auto& source) { return !source.points.pass_factors.empty(); });
    return factors ? version_with_pass_factors : schema_version;
}

/// SQLite notes its own version and a counter of changes in the header; both would make equal content differ.
void pin_header(std::string& bytes) {
    const auto put = [&](std::size_t at, std::uint32_t value) {
        for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (24 - 8 * i));
    };
    constexpr std::uint32_t written_by = 3'040'001;
    put(24, 1);
    put(92, 1);
    put(96, written_by);
}

void check_pages(const std::string& name, const Sqlite& database) {
    Statement pages(database, "PRAGMA quick_check(1)");
    if (pages.step() && pages.text(0) != "ok") fail(ErrorKind::input, "{}: is damaged: {}", name, pages.text(0));
}

/// f(), its errors naming the file.
template <class F>
void naming(const std::string& name, F f) {
    try {
        f();
    } catch (const Error& error) {
        if (std::string_view(error.what()).starts_with(name)) throw;
        throw error.in(name);
    }
}

/// Room for all rows of the table.
template <class Rows>
void reserve(const Sqlite& database, Measurements& into) {
    Statement rows(database, fmt::format("SELECT count(*) FROM {}", Rows::table));
    if (rows.step()) (into.*Rows::points).reserve(static_cast<std::size_t>(rows.integer(0)));
}

/// The points of those tables that `takes` holds of, and the origins of all.
template <class Takes>
Measurements read_tables(const std::string& name, const Sqlite& database, std::string_view device, Takes takes) {
    const std::int64_t version = pragma(database, "user_version");
    Measurements result;
    result.device = device;
    Statement sources(
        database,
        "SELECT id, file, origin, licence, sha256, transferred_permille FROM source WHERE device = ?1 ORDER BY id");
    sources.bind(1, result.device);
    naming(name, [&] {
        for_each_table([&]<class Rows>(Rows rows) {
            if (takes(rows) && has_table<Rows>(version)) reserve<Rows>(database, result);
        });
        while (sources.step()) {
            result.origins.push_back({std::string(sources.text(1)), std::string(sources.text(2)),
                                      std::string(sources.text(3)), std::string(sources.text(4)), sources.integer(5)});
            for_each_table([&]<class Rows>(Rows rows) {
                if (takes(rows) && has_table<Rows>(version)) select<Rows>(name, database, sources.integer(0), result);
            });
        }
    });
    for_each_table([&]<class Rows>(Rows) { keep_first<Rows>(result); });
    return result;
}

}  // namespace

Measurements read_store(const std::string& name, std::string_view bytes, std::string_view device, bool check) {
    const auto database = open_store(name, bytes);
    if (check) check_pages(name, database);
    Measurements result = read_tables(name, database, device, [](auto) { return true; });
    select_in_situ(name, database, result);
    select_pass_factors(name, database, result);
    return result;
}

Measurements read_links(const std::string& name, std::string_view bytes, std::string_view device) {
    return read_tables(name, open_store(name, bytes), device, []<class Rows>(Rows) {
        return std::is_same_v<Rows, CollectiveRows> || std::is_same_v<Rows, PointToPointRows>;
    });
}

std::vector<SourcedMeasurements> read_sources(const std::string& name, std::string_view bytes) {
    const auto database = open_store(name, bytes);
    check_pages(name, database);
    const std::int64_t version = pragma(database, "user_version");
    std::vector<SourcedMeasurements> result;
    Statement sources(database,
                      "SELECT id, device, file, origin, licence, sha256, transferred_permille FROM source ORDER BY id");
    naming(name, [&] {
        while (sources.step()) {
            SourcedMeasurements source{std::string(sources.text(2)),
                                       std::string(sources.text(3)),
                                       std::string(sources.text(4)),
                                       std::string(sources.text(5)),
                                       {},
                                       sources.integer(6)};
            source.points.device = sources.text(1);
            for_each_table([&]<class Rows>(Rows) {
                if (has_table<Rows>(version)) select<Rows>(name, database, sources.integer(0), source.points);
            });
            select_in_situ(name, database, source.points);
            select_pass_factors(name, database, source.points);
            result.push_back(std::move(source));
        }
    });
    return result;
}

std::string write_store(const std::vector<SourcedMeasurements>& sources) {
    Sqlite database("new cost database", unusable);
    const std::int64_t version = version_of(sources);
    database.run(schema);
    if (version >= version_with_pass_factors) database.run(pass_factor_schema);
    if (version >= version_with_linear) database.run(linear_schema);
    database.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; BEGIN", application_id, version));
    std::int64_t id = 0;
    for (const auto& source : parts_of(sources)) {
        ++id;
        Statement row(database, "INSERT INTO source VALUES(?,?,?,?,?,?,?)");
        row.bind(1, id);
        const std::array texts{&source.points.device, &source.file, &source.origin, &source.licence, &source.sha256};
        for (std::size_t i = 0; i < texts.size(); ++i) row.bind(static_cast<int>(i) + 2, *texts[i]);
        row.bind(7, source.transferred_permille);
        row.step();
        insert_in_situ(database, source.points);
        insert_pass_factors(database, source.points);
        for_each_table([&]<class Rows>(Rows) {
            if (has_table<Rows>(version)) insert<Rows>(database, id, source.points.*Rows::points);
        });
    }
    database.run("COMMIT; VACUUM");
    auto bytes = database.serialized();
    pin_header(bytes);
    return bytes;
}

std::vector<std::string> devices_of_store(const std::string& name, std::string_view bytes) {
    const auto database = open_store(name, bytes);
    Statement rows(database, "SELECT DISTINCT device FROM source ORDER BY device");
    std::vector<std::string> devices;
    while (rows.step()) devices.emplace_back(rows.text(0));
    return devices;
}

}  // namespace pipeweaver::costdb
