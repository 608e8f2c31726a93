// SQLite's connection and statement as values that close themselves; errors as exceptions. Its users link SQLite.
//
// Threads      one at a time.
#pragma once

#include "pipeweaver/base/error.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace pipeweaver {

/// A row that for_each_row() hands over.
class HandedRow {
public:
    explicit HandedRow(sqlite3_value** values) : values_(values) {}

    std::int64_t integer(int column) const { return sqlite3_value_int64(values_[column]); }
    /// Pre: the column holds text.
    std::string_view text(int column) const {
        const auto* data = static_cast<const char*>(sqlite3_value_blob(values_[column]));
        return {data ? data : "", static_cast<std::size_t>(sqlite3_value_bytes(values_[column]))};
    }

private:
    sqlite3_value** values_;
};

/// Where the rows of for_each_row() go, as SQLite carries it; what was thrown there ends the query.
struct HandedRows {
    void* take;
    void (*call)(void* take, const HandedRow& row);
    std::exception_ptr thrown;

    static void step(sqlite3_context* context, int count, sqlite3_value** values) {
        auto* rows = count > 0 ? static_cast<HandedRows*>(sqlite3_value_pointer(values[0], "rows")) : nullptr;
        if (rows == nullptr) return;
        try {
            rows->call(rows->take, HandedRow(values + 1));
        } catch (...) {
            rows->thrown = std::current_exception();
            sqlite3_result_error(context, "", 0);
        }
    }
    static void end(sqlite3_context*) {}
};

class Sqlite {
public:
    /// What an error says: "NAME: WHAT: ...", of a kind.
    struct Wrong {
        std::string what;
        ErrorKind kind = ErrorKind::io;
    };

    /// An empty database in memory. `name` is for errors.
    Sqlite(std::string name, Wrong wrong) : Sqlite(":memory:", std::move(name), std::move(wrong)) {}

    /// Reads `bytes` in place; they must outlive this.
    Sqlite(std::string name, Wrong wrong, std::string_view bytes) : Sqlite(std::move(name), std::move(wrong)) {
        auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // read-only: never written
        const auto size = static_cast<sqlite3_int64>(bytes.size());
        check(sqlite3_deserialize(connection_.get(), "main", data, size, size, SQLITE_DESERIALIZE_READONLY));
    }

    /// The database in a file, which is made where there is none.
    static Sqlite in_file(const std::string& path, Wrong wrong) { return {path, path, std::move(wrong)}; }

    void run(const std::string& sql) { check(sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr)); }

    std::string serialized() const {
        sqlite3_int64 size = 0;
        const std::unique_ptr<unsigned char, void (*)(void*)> data(
            sqlite3_serialize(connection_.get(), "main", &size, 0), sqlite3_free);
        if (!data) fail(ErrorKind::io, "{}: SQLite cannot give its bytes", name_);
        return {reinterpret_cast<const char*>(data.get()), static_cast<std::size_t>(size)};
    }

    sqlite3* raw() const { return connection_.get(); }
    void check(int status) const {
        if (status == SQLITE_OK || status == SQLITE_ROW || status == SQLITE_DONE) return;
        fail(wrong_.kind, "{}: {}: {}", name_, wrong_.what, sqlite3_errmsg(connection_.get()));
    }

private:
    Sqlite(const std::string& place, std::string name, Wrong wrong) : name_(std::move(name)), wrong_(std::move(wrong)) {
        sqlite3* raw = nullptr;
        const int status = sqlite3_open_v2(place.c_str(), &raw,
                                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
        connection_.reset(raw);
        if (status != SQLITE_OK)
            fail(ErrorKind::io, "{}: SQLite cannot open it: {}", name_,
                 raw != nullptr ? sqlite3_errmsg(raw) : "no memory");
        // For queries of ours alone: a view of the file that called it would be given no rows to read.
        check(sqlite3_create_function_v2(raw, "hand", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, nullptr, nullptr,
                                         HandedRows::step, HandedRows::end, nullptr));
    }

    struct Close {
        void operator()(sqlite3* c) const { sqlite3_close(c); }
    };
    std::string name_;
    Wrong wrong_;
    std::unique_ptr<sqlite3, Close> connection_;
};

class Statement {
public:
    Statement(const Sqlite& database, const std::string& sql) : database_(database) {
        sqlite3_stmt* raw = nullptr;
        database.check(sqlite3_prepare_v2(database.raw(), sql.c_str(), -1, &raw, nullptr));
        statement_.reset(raw);
    }

    void bind(int place, std::int64_t value) { database_.check(sqlite3_bind_int64(statement_.get(), place, value)); }
    void bind(int place, std::string_view value) {
        database_.check(
            sqlite3_bind_text(statement_.get(), place, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT));
    }

    void bind_blob(int place, std::string_view value) {
        database_.check(sqlite3_bind_blob64(statement_.get(), place, value.data(), value.size(), SQLITE_TRANSIENT));
    }

    /// `rows` must outlive the statement.
    void bind_rows(int place, HandedRows& rows) {
        database_.check(sqlite3_bind_pointer(statement_.get(), place, &rows, "rows", nullptr));
    }

    /// The next row; false after the last.
    bool step() {
        const int status = try_step();
        database_.check(status);
        return status == SQLITE_ROW;
    }
    /// The same as SQLite's own code, unchecked.
    int try_step() { return sqlite3_step(statement_.get()); }
    void reset() { database_.check(sqlite3_reset(statement_.get())); }

    std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
    std::string_view text(int column) const {
        const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
        return {data ? data : "", static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
    }
    std::string blob(int column) const {
        const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
        return {data ? data : "", static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
    }

private:
    struct Finalize {
        void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
    };
    const Sqlite& database_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// f(row) for each row of "SELECT `columns` FROM `rest`", in which ?1 is `first`. A row costs a third less than
/// by Statement::step(): SQLite calls f as an aggregate, and gives nothing back between rows.
template <class F>
void for_each_row(const Sqlite& database, const std::string& columns, const std::string& rest, std::int64_t first,
                  F f) {
    HandedRows rows{&f, [](void* take, const HandedRow& row) { (*static_cast<F*>(take))(row); }, nullptr};
    Statement query(database, "SELECT hand(?2, " + columns + ") FROM " + rest);
    query.bind(1, first);
    query.bind_rows(2, rows);
    const int status = query.try_step();
    if (rows.thrown) std::rethrow_exception(rows.thrown);
    database.check(status);
}

/// A number that the database keeps beside its tables, "user_version"; 0 where it has none.
[[nodiscard]] inline std::int64_t pragma(const Sqlite& database, const std::string& name) {
    Statement statement(database, "PRAGMA " + name);
    return statement.step() ? statement.integer(0) : 0;
}

}  // namespace pipeweaver
