// SQLite's connection and statement as values that close themselves; errors as exceptions. Its users link SQLite.
//
// Threads      one at a time.
#pragma once

#include "pipeweaver/base/error.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace pipeweaver {

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
        if (status == SQLITE_OK) return;
        fail(ErrorKind::io, "{}: SQLite cannot open it: {}", name_, raw != nullptr ? sqlite3_errmsg(raw) : "no memory");
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

    /// The next row; false after the last.
    bool step() {
        const int status = sqlite3_step(statement_.get());
        database_.check(status);
        return status == SQLITE_ROW;
    }
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

/// A number that the database keeps beside its tables, "user_version"; 0 where it has none.
[[nodiscard]] inline std::int64_t pragma(const Sqlite& database, const std::string& name) {
    Statement statement(database, "PRAGMA " + name);
    return statement.step() ? statement.integer(0) : 0;
}

}  // namespace pipeweaver
