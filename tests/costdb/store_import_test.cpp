#include "costdb/import/outliers.hpp"
#include "costdb/store/store_file.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/sqlite.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

std::string gemm_table(int m, const std::string& us) {
    return "dtype,m,n,k,latency_us\nbf16," + std::to_string(m) + ",256,512," + us + "\n";
}

Imported add(const Folder& folder, const std::string& name, const std::string& table) {
    return add_tables({{folder.write(name, table), "h100_sxm", "test", "none"}}, folder / "db.sqlite");
}

std::int64_t answer_ns(const Folder& folder, std::int64_t m) {
    const auto database = CostDatabase::read(folder / "db.sqlite", "h100_sxm");
    const auto cost = database.cost(Gemm{.m = m, .n = 256, .k = 512});
    CHECK(cost.basis == Basis::exact);
    return cost.duration.count();
}

Folder& with_database(Folder& folder) {
    static_cast<void>(import_tables({{folder.write("first.csv", gemm_table(128, "7")), "h100_sxm", "test", "none"}},
                                    folder / "db.sqlite"));
    return folder;
}

std::string refusal(const Folder& folder, ErrorKind kind) {
    try {
        static_cast<void>(add(folder, "more.csv", gemm_table(64, "5")));
    } catch (const Error& error) {
        CHECK(error.kind() == kind);
        return std::string(error.what()).substr(folder.path().string().size() + 1);
    }
    return "accepted";
}

}  // namespace

TEST_CASE("what is added to a database answers beside what was there, and the last import first") {
    Folder made("into");
    const auto& folder = with_database(made);

    CHECK(add(folder, "second.csv", gemm_table(64, "5")).points == 1);
    CHECK(answer_ns(folder, 128) == 7'000);
    CHECK(answer_ns(folder, 64) == 5'000);

    static_cast<void>(add(folder, "third.csv", gemm_table(128, "9")));
    CHECK(answer_ns(folder, 128) == 9'000);
}

TEST_CASE("the same file again changes nothing, and a changed one takes the place of the old") {
    Folder made("again");
    const auto& folder = with_database(made);
    const auto before = read_file(folder / "db.sqlite");

    CHECK(add(folder, "first.csv", gemm_table(128, "7")).unchanged == 1);
    CHECK(read_file(folder / "db.sqlite") == before);
    CHECK(add(folder, "first.csv", gemm_table(96, "6")).replaced == 1);
    CHECK(CostDatabase::read(folder / "db.sqlite", "h100_sxm").measurements().gemm.size() == 1);
    CHECK(answer_ns(folder, 96) == 6'000);
}

TEST_CASE("a database that cannot be added to stays as it is") {
    Folder made("kept");
    const auto& folder = with_database(made);
    const auto good = read_file(folder / "db.sqlite");
    const auto with = [&](const std::string& bytes) {
        folder.write("db.sqlite", bytes);
        auto said = refusal(folder, ErrorKind::input);
        CHECK(read_file(folder / "db.sqlite") == bytes);
        return said;
    };
    CHECK(with(good.substr(0, good.size() / 2)) != "accepted");
    CHECK(with("") == "db.sqlite: is not a cost database: not SQLite");
    auto newer = good;
    newer[63] = 9;  // user_version
    CHECK(with(newer) == "db.sqlite: is a cost database of version 9, this program reads versions 3 to 5");
    std::filesystem::remove(folder / "db.sqlite");
    CHECK(refusal(folder, ErrorKind::io).starts_with("db.sqlite: cannot be read: "));
    CHECK_FALSE(std::filesystem::exists(folder / "db.sqlite"));
}

TEST_CASE("imports at once into one database lose no points") {
    Folder made("writers");
    const auto& folder = with_database(made);
    constexpr int writers = 8;
    {
        std::vector<std::jthread> threads;
        threads.reserve(writers);
        for (int i = 0; i < writers; ++i)
            threads.emplace_back([&, i] {
                static_cast<void>(add(folder, "writer" + std::to_string(i) + ".csv", gemm_table(200 + i, "3")));
            });
    }
    CHECK(CostDatabase::read(folder / "db.sqlite", "h100_sxm").measurements().gemm.size() == 1 + writers);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        CHECK(entry.path().filename().string().front() != '.');  // nothing temporary is left
}

TEST_CASE("a database behind a link is replaced where it is") {
    Folder made("link");
    const auto& folder = with_database(made);
    std::filesystem::create_directories(folder / "else");
    std::filesystem::rename(folder / "db.sqlite", folder / "else/real.sqlite");
    std::filesystem::create_symlink("else/real.sqlite", folder / "db.sqlite");

    static_cast<void>(add(folder, "more.csv", gemm_table(64, "5")));
    CHECK(std::filesystem::is_symlink(folder / "db.sqlite"));
    CHECK(answer_ns(folder, 64) == 5'000);
}

TEST_CASE("points far off their neighbours and faster than the device are named") {
    Measurements points;
    points.device = "h100_sxm";
    for (std::int64_t m = 256; m <= 65536; m *= 2)
        points.gemm.push_back({.m = m, .n = 1024, .k = 1024, .latency_ns = m * 10});
    CHECK(outliers(points).empty());

    points.gemm[3].latency_ns *= 5;
    auto found = outliers(points);
    REQUIRE(found.size() == 1);
    CHECK(found[0] == "gemm bf16 forward 2048x1024x1024: 102.400 us, 5.0 times above what its neighbours say");

    points.gemm[3].latency_ns /= 5;
    points.gemm = {{.m = 65536, .n = 1024, .k = 1024, .latency_ns = 100'000}};  // 137 Tflop in 100 us
    found = outliers(points);
    REQUIRE(found.size() == 1);
    CHECK(found[0].find("times the peak of h100_sxm") != std::string::npos);
}

TEST_CASE("a view of a file that itself calls what takes its rows is refused") {
    Sqlite database("made", {.what = "cannot be read", .kind = ErrorKind::input});
    database.run(
        "CREATE TABLE kept(a INTEGER NOT NULL) STRICT; INSERT INTO kept VALUES(1);"
        "CREATE VIEW gemm AS SELECT a, (SELECT hand() FROM kept) AS b FROM kept");
    std::int64_t sum = 0;
    for_each_row(database, "a", "kept WHERE a = ?1", 1, [&](const HandedRow& row) { sum += row.integer(0); });
    CHECK(sum == 1);
    CHECK_THROWS_AS(for_each_row(database, "b", "gemm WHERE a = ?1", 1, [](const HandedRow&) {}), Error);
}
