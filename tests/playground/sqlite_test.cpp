// The playground's reader of SQLite's files gives what SQLite does.
#include "costdb/embedded.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/playground/real_sqlite.hpp"
#include "tools/playground/stand_ins/sqlite/sqlite3.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace pipeweaver;

// Rows as real_sqlite::rows() gives them; of a column in `texts` as text, else as a number. What is wrong, as one row.
std::vector<std::string> read(std::string bytes, const std::string& sql, std::string_view kinds,
                              std::optional<std::int64_t> bound = {}) {
    sqlite3* opened = nullptr;
    sqlite3_open_v2(":memory:", &opened, 0, nullptr);
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(opened, sqlite3_close);
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    auto* data = reinterpret_cast<unsigned char*>(bytes.data());
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_deserialize(opened, "main", data, size, size, 0) != SQLITE_OK ||
        sqlite3_prepare_v2(opened, sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK)
        return {sqlite3_errmsg(opened)};
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
    if (bound) sqlite3_bind_int64(prepared, 1, *bound);
    std::vector<std::string> all;
    int status = sqlite3_step(prepared);
    for (; status == SQLITE_ROW; status = sqlite3_step(prepared)) {
        std::string& row = all.emplace_back();
        for (std::size_t i = 0; i < kinds.size(); ++i) {
            const int column = static_cast<int>(i);
            if (kinds[i] == 'n') {
                row += fmt::format("{}|", sqlite3_column_int64(prepared, column));
                continue;
            }
            const auto* text = static_cast<const char*>(sqlite3_column_blob(prepared, column));
            row.append(text, static_cast<std::size_t>(sqlite3_column_bytes(prepared, column))).append("|");
        }
    }
    if (status != SQLITE_DONE) return {sqlite3_errmsg(opened)};
    return all;
}

// Takes rows of (id, name) as `read` gives them, until one is called "row 30".
struct Handed {
    std::vector<std::string> rows{};

    static void each_row(sqlite3_context* context, int count, sqlite3_value** values) {
        const std::string_view name(static_cast<const char*>(sqlite3_value_blob(values[2])),
                                    static_cast<std::size_t>(sqlite3_value_bytes(values[2])));
        if (count != 3 || name == "row 30") return sqlite3_result_error(context, "enough", -1);
        static_cast<Handed*>(sqlite3_value_pointer(values[0], "rows"))
            ->rows.push_back(fmt::format("{}|{}|", sqlite3_value_int64(values[1]), name));
    }
};

// Some 3000 rows: pages below pages; numbers of each width, of either sign.
std::string some_rows() {
    return real_sqlite::made(
        "CREATE TABLE kept(id INTEGER PRIMARY KEY, source INTEGER NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL) "
        "STRICT; CREATE TABLE keyed(a INTEGER NOT NULL, b TEXT NOT NULL, PRIMARY KEY(a, b)) STRICT, WITHOUT ROWID;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO kept "
        "SELECT i, i % 3, 'row ' || i, (1 << (i % 62)) * (CASE WHEN i % 2 THEN -1 ELSE 1 END) + i % 5 FROM n;"
        "INSERT INTO keyed SELECT size, name FROM kept; PRAGMA user_version = 7");
}

}  // namespace

TEST_CASE("playground: its SQLite reader gives the rows of tables with row ids and without, as SQLite does") {
    const std::string bytes = some_rows();
    const std::string kept = "SELECT id,source,name,size FROM kept", keyed = "SELECT a, b FROM keyed";
    CHECK(read(bytes, kept, "nntn") == real_sqlite::rows(bytes, kept));
    CHECK(read(bytes, kept, "nntn").size() == 3000);
    CHECK(read(bytes, keyed, "nt") == real_sqlite::rows(bytes, keyed));
    CHECK(read(bytes, kept + " WHERE source = ?1 ORDER BY id", "nntn", 2) ==
          real_sqlite::rows(bytes, kept + " WHERE source = 2 ORDER BY id"));
    for (const char* order : {" ORDER BY source, name DESC", " ORDER BY source DESC, size, id"})
        CHECK(read(bytes, kept + order, "nntn") == real_sqlite::rows(bytes, kept + order));
    CHECK(read(bytes, "SELECT count(*) FROM keyed", "n") == std::vector<std::string>{"3000|"});
    CHECK(read(bytes, "PRAGMA user_version", "n") == std::vector<std::string>{"7|"});
}

TEST_CASE("playground: of each device's costs its SQLite reader counts SQLite's rows") {
    for (const std::string& device : costdb::embedded_devices()) {
        const std::string bytes = gunzip(costdb::embedded_store(device));
        for (const std::string& table :
             real_sqlite::rows(bytes, "SELECT name FROM sqlite_schema WHERE type = 'table'")) {
            const auto count = fmt::format("SELECT count(*) FROM {}", table.substr(0, table.size() - 1));
            CHECK_MESSAGE(read(bytes, count, "n") == real_sqlite::rows(bytes, count), device << ": " << table);
        }
    }
}

TEST_CASE("playground: its SQLite reader hands rows to a function, as far as that takes them") {
    std::string bytes = some_rows();
    sqlite3* opened = nullptr;
    sqlite3_open_v2(":memory:", &opened, 0, nullptr);
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(opened, sqlite3_close);
    sqlite3_create_function_v2(opened, "hand", -1, SQLITE_UTF8, nullptr, nullptr, Handed::each_row, nullptr, nullptr);
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    sqlite3_deserialize(opened, "main", reinterpret_cast<unsigned char*>(bytes.data()), size, size, 0);
    const auto status_of = [&](std::int64_t source, Handed& handed) {
        sqlite3_stmt* prepared = nullptr;
        REQUIRE(sqlite3_prepare_v2(opened, "SELECT hand(?2, id,name) FROM kept WHERE source = ?1", -1, &prepared,
                                   nullptr) == SQLITE_OK);
        const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
        sqlite3_bind_int64(prepared, 1, source);
        sqlite3_bind_pointer(prepared, 2, &handed, "rows", nullptr);
        return sqlite3_step(prepared);
    };
    Handed all, some;
    CHECK(status_of(1, all) == SQLITE_DONE);
    CHECK(all.rows == real_sqlite::rows(bytes, "SELECT id, name FROM kept WHERE source = 1"));
    CHECK(status_of(0, some) == SQLITE_ERROR);  // of 3, 6, ... 27 nine come before 30
    CHECK(some.rows.size() == 9);
    CHECK(sqlite3_errmsg(opened) == std::string("enough"));
}

TEST_CASE("playground: its SQLite reader says what is wrong with a file") {
    const std::string bytes = some_rows(), kept = "SELECT id FROM kept";
    using Lines = std::vector<std::string>;
    CHECK(read("", kept, "n") == Lines{"it ends too early"});
    CHECK(read(bytes.substr(0, bytes.size() / 2), kept, "n") == Lines{"a page is missing"});
    CHECK(read(bytes, "SELECT id FROM gone", "n") == Lines{"no such table: gone"});
    CHECK(read(bytes, "SELECT size, id FROM keyed", "n") == Lines{"no such column: size"});
    CHECK(read(bytes, kept + " WHERE source = ?1 AND size = ?2", "n") ==
          Lines{"no more than one condition is read here"});
    CHECK(read(bytes, "DELETE FROM kept", "") == Lines{"it is only read here"});
}
