// Points as tables, and back.
#include "pipeweaver/costdb/export.hpp"

#include "costdb/store/store.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "pipeweaver/costdb/stats.hpp"
#include "pipeweaver/costdb/transfer.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

template <class Point>
auto all_of(const Measurements& in, const Point& p) {
    const auto& origin = in.origins.at(static_cast<std::size_t>(p.origin));
    return std::tuple(key_of(p), p.latency_ns, p.spread_permille, origin.file, origin.origin, origin.licence);
}

template <class Point>
void check_equal(const Measurements& a, const Measurements& b, std::vector<Point> Measurements::*points) {
    REQUIRE((a.*points).size() == (b.*points).size());
    for (std::size_t i = 0; i < (a.*points).size(); ++i)
        if (all_of(a, (a.*points)[i]) != all_of(b, (b.*points)[i])) FAIL("point " << i);
}

/// Every kind of point, of two sources.
Measurements one_of_each() {
    Measurements m;
    m.device = "h100_sxm";
    m.origins = {{"a.csv", "us, and \"them\"", "CC0", ""}, {"b.csv", "others", "MIT", ""}};
    m.gemm = {{.dtype = Dtype::fp8, .m = 1, .n = 2, .k = 3, .latency_ns = 2001, .spread_permille = 15, .origin = 1},
              {.pass = Pass::backward_weight, .m = 4, .n = 5, .k = 6, .latency_ns = 1, .origin = 0}};
    m.attention = {{.pass = Pass::backward,
                    .batch = 1,
                    .seq_len = 128,
                    .q_heads = 8,
                    .kv_heads = 2,
                    .head_dim = 64,
                    .causal = false,
                    .latency_ns = 12'345'678,
                    .spread_permille = 1003,
                    .origin = 1}};
    m.collective = {{.kind = CollectiveKind::all_to_all, .gpus = 4, .message_bytes = 1024, .latency_ns = 9000},
                    {.source = LinkSource::large,
                     .dtype = Dtype::fp32,
                     .gpus = 8,
                     .message_bytes = 1 << 20,
                     .latency_ns = 123'456,
                     .origin = 1},
                    {.source = LinkSource::nodes,
                     .gpus = 16,
                     .gpus_per_node = 4,
                     .message_bytes = 4096,
                     .latency_ns = 50'000,
                     .origin = 1}};
    m.point_to_point = {{.gpus_per_node = 2, .message_bytes = 65'536, .latency_ns = 7000}};
    m.moe = {{.tokens = 16,
              .hidden = 1024,
              .ffn = 512,
              .top_k = 2,
              .experts = 8,
              .moe_tp = 1,
              .moe_ep = 2,
              .routing = "balanced",
              .latency_ns = 31'000,
              .spread_permille = 4}};
    m.elementwise = {{.kind = ElementwiseKind::optimizer, .traffic_bytes = 1 << 20, .latency_ns = 900}};
    m.linear = {{.kernel = LinearKernel::chunk_gated_delta_rule_flashinfer,
                 .batch = 2,
                 .seq_len = 4096,
                 .key_heads = 16,
                 .value_heads = 32,
                 .key_dim = 128,
                 .value_dim = 64,
                 .latency_ns = 77'000,
                 .spread_permille = 12,
                 .origin = 1}};
    return m;
}

/// All tables out, and in again.
Measurements round_trip(const Measurements& points, const Folder& folder) {
    std::vector<TableFile> files;
    for (const auto& table : exported_tables()) {
        const auto exported = export_table(points, table);
        if (exported.points == 0) continue;
        files.push_back({folder.write(table + ".csv", exported.csv), points.device, "lost", "lost"});
    }
    import_tables(files, folder / "again.sqlite");
    return CostDatabase::read(folder / "again.sqlite", points.device).measurements();
}

}  // namespace

TEST_CASE("an export that is imported again has the same points of the same origins") {
    const Folder folder("export");
    write_database(folder / "first.sqlite", one_of_each());
    const auto first = CostDatabase::read(folder / "first.sqlite", "h100_sxm").measurements();

    const auto again = round_trip(first, folder);

    check_equal(first, again, &Measurements::gemm);
    check_equal(first, again, &Measurements::attention);
    check_equal(first, again, &Measurements::collective);
    check_equal(first, again, &Measurements::point_to_point);
    check_equal(first, again, &Measurements::moe);
    check_equal(first, again, &Measurements::elementwise);
    check_equal(first, again, &Measurements::linear);
}

TEST_CASE("links that are read alone are those of all tables, of the same origins") {
    const Folder folder("links");
    write_database(folder / "all.sqlite", one_of_each());
    const std::string bytes = read_file(folder / "all.sqlite");
    const Measurements all = read_store("all", bytes, "h100_sxm", true), links = read_links("all", bytes, "h100_sxm");
    check_equal(all, links, &Measurements::collective);
    check_equal(all, links, &Measurements::point_to_point);
    CHECK(links.collective.size() == 3);
    CHECK(links.origins.size() == all.origins.size());
    CHECK((links.gemm.empty() && links.attention.empty() && links.moe.empty() && links.linear.empty()));
}

TEST_CASE("points of several sources are read in the order of their keys, of equal ones the first source's") {
    const auto source = [](const std::string& file, const std::vector<std::pair<std::int64_t, std::int64_t>>& times) {
        SourcedMeasurements made{file, "made up", "CC0", "", {}, 0};
        made.points.device = "h100_sxm";
        for (const auto& [m, ns] : times) made.points.gemm.push_back({.m = m, .n = 8, .k = 8, .latency_ns = ns});
        return made;
    };
    const auto read = [](const std::vector<SourcedMeasurements>& sources) {
        std::vector<std::pair<std::int64_t, std::int64_t>> times;
        for (const GemmPoint& p : read_store("made", write_store(sources), "h100_sxm", true).gemm)
            times.emplace_back(p.m, p.latency_ns);
        return times;
    };
    using Times = std::vector<std::pair<std::int64_t, std::int64_t>>;
    const auto a = source("a", {{3, 30}, {4, 40}}), b = source("b", {{1, 11}, {3, 33}}),
               c = source("c", {{2, 22}, {4, 44}});
    CHECK(read({a}) == Times{{3, 30}, {4, 40}});
    CHECK(read({a, b}) == Times{{1, 11}, {3, 30}, {4, 40}});
    CHECK(read({a, b, c}) == Times{{1, 11}, {2, 22}, {3, 30}, {4, 40}});
    CHECK(read({b, a}) == Times{{1, 11}, {3, 33}, {4, 40}});
}

TEST_CASE("the embedded tables of A100 as a card and the links of A100 survive the round trip") {
    const Folder folder("export-pcie");
    const auto pcie = CostDatabase::embedded("a100_pcie");
    const auto again = round_trip(pcie.measurements(), folder);
    check_equal(pcie.measurements(), again, &Measurements::gemm);
    check_equal(pcie.measurements(), again, &Measurements::attention);

    Measurements links;
    links.device = "a100_sxm";
    links.origins = a100().measurements().origins;
    links.collective = a100().measurements().collective;
    links.point_to_point = a100().measurements().point_to_point;
    const auto links_again = round_trip(links, folder);
    check_equal(links, links_again, &Measurements::collective);
    check_equal(links, links_again, &Measurements::point_to_point);
}

TEST_CASE("points that were carried over are not exported as measured") {
    auto points = one_of_each();
    points.origins[1].transferred_permille = 150;

    const auto exported = export_table(points, "gemm");

    CHECK(exported.points == 1);
    CHECK(exported.left_out == 1);
    CHECK(exported.csv ==
          "dtype,m,n,k,pass,latency_us,spread_percent,source,origin,licence\n"
          "bf16,4,5,6,backward_weight,0.001,,a.csv,\"us, and \"\"them\"\"\",CC0\n");
}

TEST_CASE("provenance columns come together or not at all, and tables are known by name") {
    const Folder folder("provenance");
    const auto path = folder.write("t.csv", "dtype,m,n,k,latency_us,origin\nbf16,1,1,1,2,me\n");
    CHECK_THROWS_WITH_AS(import_tables({{path, "h100_sxm", "x", "y"}}, folder / "t.sqlite"),
                         doctest::Contains("column 'source' is missing"), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(export_table(one_of_each(), "gems")),
                         "unknown table 'gems'; did you mean 'gemm'?", Error);
}

TEST_CASE("stats count points by operator, kind and source, with the range of every axis") {
    const auto rows = stats(one_of_each());

    REQUIRE(rows.size() == 10);
    CHECK(rows[0].op == "gemm");
    CHECK(rows[0].kind == "bf16 backward_weight");
    CHECK(rows[0].source == "a.csv");
    CHECK(rows[0].axes[0].low == 4);
    std::size_t points = 0;
    for (const auto& row : stats(h100().measurements())) points += row.points;
    const auto& m = h100().measurements();
    CHECK(points == m.gemm.size() + m.attention.size() + m.collective.size() + m.point_to_point.size() + m.moe.size() +
                        m.linear.size());
}
