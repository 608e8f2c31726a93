#include "costdb/store.hpp"

#include "costdb/sqlite.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace pipeweaver::costdb {

namespace {

constexpr std::int64_t application_id = 0x50574344;  // "PWCD"
constexpr std::int64_t schema_version = 1;
constexpr std::int64_t longest_ns = 3'600'000'000'000;

const std::string schema = R"(
PRAGMA page_size = 4096;
CREATE TABLE source(
  id INTEGER PRIMARY KEY, device TEXT NOT NULL, file TEXT NOT NULL, origin TEXT NOT NULL, licence TEXT NOT NULL,
  sha256 TEXT NOT NULL) STRICT;
CREATE TABLE gemm(
  source INTEGER NOT NULL, dtype TEXT NOT NULL, pass TEXT NOT NULL, m INTEGER NOT NULL, n INTEGER NOT NULL,
  k INTEGER NOT NULL, latency_ns INTEGER NOT NULL,
  PRIMARY KEY(source, dtype, pass, m, n, k)) STRICT, WITHOUT ROWID;
CREATE TABLE attention(
  source INTEGER NOT NULL, dtype TEXT NOT NULL, pass TEXT NOT NULL, causal INTEGER NOT NULL, head_dim INTEGER NOT NULL,
  kv_heads INTEGER NOT NULL, q_heads INTEGER NOT NULL, batch INTEGER NOT NULL, seq_len INTEGER NOT NULL,
  latency_ns INTEGER NOT NULL,
  PRIMARY KEY(source, dtype, pass, causal, head_dim, kv_heads, q_heads, batch, seq_len)) STRICT, WITHOUT ROWID;
CREATE TABLE collective(
  source INTEGER NOT NULL, sweep TEXT NOT NULL, collective TEXT NOT NULL, dtype TEXT NOT NULL, gpus INTEGER NOT NULL,
  gpus_per_node INTEGER NOT NULL, message_bytes INTEGER NOT NULL, latency_ns INTEGER NOT NULL,
  PRIMARY KEY(source, sweep, collective, dtype, gpus, gpus_per_node, message_bytes)) STRICT, WITHOUT ROWID;
CREATE TABLE point_to_point(
  source INTEGER NOT NULL, gpus_per_node INTEGER NOT NULL, message_bytes INTEGER NOT NULL, latency_ns INTEGER NOT NULL,
  PRIMARY KEY(source, gpus_per_node, message_bytes)) STRICT, WITHOUT ROWID;
CREATE TABLE moe(
  source INTEGER NOT NULL, dtype TEXT NOT NULL, routing TEXT NOT NULL, hidden INTEGER NOT NULL, ffn INTEGER NOT NULL,
  top_k INTEGER NOT NULL, experts INTEGER NOT NULL, moe_tp INTEGER NOT NULL, moe_ep INTEGER NOT NULL,
  tokens INTEGER NOT NULL, latency_ns INTEGER NOT NULL,
  PRIMARY KEY(source, dtype, routing, hidden, ffn, top_k, experts, moe_tp, moe_ep, tokens)) STRICT, WITHOUT ROWID;
)";

const std::array<std::string, 3> sweeps{"sweep", "large", "nodes"};

// ---- one struct per table: its name, its columns but the source, a point to values and back

struct GemmRows {
    using Point = GemmPoint;
    static constexpr auto table = "gemm";
    static constexpr auto columns = "dtype,pass,m,n,k,latency_ns";
    static constexpr auto points = &Measurements::gemm;
    static auto values(const Point& p) {
        return std::tuple(std::string(name_of(p.dtype)), std::string(name_of(p.pass)), p.m, p.n, p.k, p.latency_ns);
    }
    static Point point(const Statement& s) {
        return {static_cast<Dtype>(index_of("dtype", s.text(0), dtype_names())),
                static_cast<Pass>(index_of("pass", s.text(1), pass_names())),
                s.integer(2),
                s.integer(3),
                s.integer(4),
                s.integer(5)};
    }
};

struct AttentionRows {
    using Point = AttentionPoint;
    static constexpr auto table = "attention";
    static constexpr auto columns = "dtype,pass,causal,head_dim,kv_heads,q_heads,batch,seq_len,latency_ns";
    static constexpr auto points = &Measurements::attention;
    static auto values(const Point& p) {
        return std::tuple(std::string(name_of(p.dtype)), std::string(name_of(p.pass)), std::int64_t{p.causal},
                          p.head_dim, p.kv_heads, p.q_heads, p.batch, p.seq_len, p.latency_ns);
    }
    static Point point(const Statement& s) {
        return {.dtype = static_cast<Dtype>(index_of("dtype", s.text(0), dtype_names())),
                .pass = static_cast<Pass>(index_of("pass", s.text(1), pass_names())),
                .batch = s.integer(6),
                .seq_len = s.integer(7),
                .q_heads = s.integer(5),
                .kv_heads = s.integer(4),
                .head_dim = s.integer(3),
                .causal = s.integer(2) != 0,
                .latency_ns = s.integer(8)};
    }
};

struct CollectiveRows {
    using Point = CollectivePoint;
    static constexpr auto table = "collective";
    static constexpr auto columns = "sweep,collective,dtype,gpus,gpus_per_node,message_bytes,latency_ns";
    static constexpr auto points = &Measurements::collective;
    static auto values(const Point& p) {
        return std::tuple(sweeps[static_cast<std::size_t>(p.source)], std::string(name_of(p.kind)),
                          std::string(name_of(p.dtype)), p.gpus, p.gpus_per_node, p.message_bytes, p.latency_ns);
    }
    static Point point(const Statement& s) {
        return {static_cast<LinkSource>(index_of("sweep", s.text(0), sweeps)),
                static_cast<CollectiveKind>(index_of("collective", s.text(1), collective_names())),
                static_cast<Dtype>(index_of("dtype", s.text(2), dtype_names())),
                s.integer(3),
                s.integer(4),
                s.integer(5),
                s.integer(6)};
    }
};

struct PointToPointRows {
    using Point = PointToPointPoint;
    static constexpr auto table = "point_to_point";
    static constexpr auto columns = "gpus_per_node,message_bytes,latency_ns";
    static constexpr auto points = &Measurements::point_to_point;
    static auto values(const Point& p) { return std::tuple(p.gpus_per_node, p.message_bytes, p.latency_ns); }
    static Point point(const Statement& s) { return {s.integer(0), s.integer(1), s.integer(2)}; }
};

struct MoeRows {
    using Point = MoePoint;
    static constexpr auto table = "moe";
    static constexpr auto columns = "dtype,routing,hidden,ffn,top_k,experts,moe_tp,moe_ep,tokens,latency_ns";
    static constexpr auto points = &Measurements::moe;
    static auto values(const Point& p) {
        return std::tuple(std::string(name_of(p.dtype)), p.routing, p.hidden, p.ffn, p.top_k, p.experts, p.moe_tp,
                          p.moe_ep, p.tokens, p.latency_ns);
    }
    static Point point(const Statement& s) {
        return {.dtype = static_cast<Dtype>(index_of("dtype", s.text(0), dtype_names())),
                .tokens = s.integer(8),
                .hidden = s.integer(2),
                .ffn = s.integer(3),
                .top_k = s.integer(4),
                .experts = s.integer(5),
                .moe_tp = s.integer(6),
                .moe_ep = s.integer(7),
                .routing = std::string(s.text(1)),
                .latency_ns = s.integer(9)};
    }
};

/// f(GemmRows{}), f(AttentionRows{}), ...
template <class F>
void for_each_table(F f) {
    f(GemmRows{});
    f(AttentionRows{});
    f(CollectiveRows{});
    f(PointToPointRows{});
    f(MoeRows{});
}

template <class Rows>
void insert(const Sqlite& database, std::int64_t source, std::vector<typename Rows::Point> points) {
    std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return key_of(a) < key_of(b); });
    const std::string columns = Rows::columns;
    std::string places = "?";
    for (auto n = std::count(columns.begin(), columns.end(), ',') + 1; n > 0; --n) places += ",?";
    Statement statement(database,
                        fmt::format("INSERT INTO {}(source,{}) VALUES({})", Rows::table, Rows::columns, places));
    for (const auto& point : points) {
        statement.bind(1, source);
        std::apply([&, place = 1](const auto&... value) mutable { (statement.bind(++place, value), ...); },
                   Rows::values(point));
        statement.step();
        statement.reset();
    }
}

template <class Point>
bool is_sane(const Point& point) {
    const auto above_zero = [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::int64_t>) return value >= 1;
        return true;
    };
    return point.latency_ns >= 1 && point.latency_ns <= longest_ns &&
           std::apply([&](const auto&... value) { return (above_zero(value) && ...); }, key_of(point));
}

template <class Rows>
void select(const std::string& name, const Sqlite& database, std::int64_t source, Measurements& into) {
    auto& points = into.*Rows::points;
    Statement rows(database, fmt::format("SELECT {} FROM {} WHERE source = ?1", Rows::columns, Rows::table));
    rows.bind(1, source);
    while (rows.step()) {
        points.push_back(Rows::point(rows));
        if (!is_sane(points.back()))
            fail(ErrorKind::input, "{}: {}: a size or latency of source {} is not possible", name, Rows::table, source);
    }
}

/// Sorts, and keeps of equal keys the first.
template <class Rows>
void keep_first(Measurements& in) {
    auto& points = in.*Rows::points;
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return key_of(a) < key_of(b); });
    points.erase(
        std::unique(points.begin(), points.end(), [](const auto& a, const auto& b) { return key_of(a) == key_of(b); }),
        points.end());
}

std::int64_t pragma(const Sqlite& database, const std::string& name) {
    Statement statement(database, "PRAGMA " + name);
    return statement.step() ? statement.integer(0) : 0;
}

Sqlite open_store(const std::string& name, std::string_view bytes) {
    if (!bytes.starts_with(std::string_view("SQLite format 3\0", 16)))
        fail(ErrorKind::input, "{}: is not a cost database: not SQLite", name);
    Sqlite database(name, bytes);
    if (pragma(database, "application_id") != application_id)
        fail(ErrorKind::input, "{}: is not a cost database: its application id is not PWCD", name);
    if (const auto version = pragma(database, "user_version"); version != schema_version)
        fail(ErrorKind::input, "{}: is a cost database of version {}, this program reads version {}", name, version,
             schema_version);
    return database;
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

}  // namespace

std::string write_store(const std::vector<SourcedMeasurements>& sources) {
    Sqlite database("new cost database");
    database.run(schema);
    database.run(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; BEGIN", application_id, schema_version));
    std::int64_t id = 0;
    for (const auto& source : sources) {
        ++id;
        Statement row(database, "INSERT INTO source VALUES(?,?,?,?,?,?)");
        row.bind(1, id);
        const std::array texts{&source.points.device, &source.file, &source.origin, &source.licence, &source.sha256};
        for (std::size_t i = 0; i < texts.size(); ++i) row.bind(static_cast<int>(i) + 2, *texts[i]);
        row.step();
        for_each_table([&]<class Rows>(Rows) { insert<Rows>(database, id, source.points.*Rows::points); });
    }
    database.run("COMMIT; VACUUM");
    auto bytes = database.serialized();
    pin_header(bytes);
    return bytes;
}

Measurements read_store(const std::string& name, std::string_view bytes, std::string_view device, bool check) {
    const auto database = open_store(name, bytes);
    if (check) {
        Statement pages(database, "PRAGMA quick_check(1)");
        if (pages.step() && pages.text(0) != "ok") fail(ErrorKind::input, "{}: is damaged: {}", name, pages.text(0));
    }
    Measurements result;
    result.device = device;
    Statement sources(database, "SELECT id FROM source WHERE device = ?1 ORDER BY id");
    sources.bind(1, result.device);
    try {
        while (sources.step())
            for_each_table([&]<class Rows>(Rows) { select<Rows>(name, database, sources.integer(0), result); });
    } catch (const Error& error) {
        if (std::string_view(error.what()).starts_with(name)) throw;
        throw error.in(name);
    }
    for_each_table([&]<class Rows>(Rows) { keep_first<Rows>(result); });
    return result;
}

std::vector<std::string> devices_of_store(const std::string& name, std::string_view bytes) {
    const auto database = open_store(name, bytes);
    Statement rows(database, "SELECT DISTINCT device FROM source ORDER BY device");
    std::vector<std::string> devices;
    while (rows.step()) devices.emplace_back(rows.text(0));
    return devices;
}

}  // namespace pipeweaver::costdb
