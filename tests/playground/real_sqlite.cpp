#include "tests/playground/real_sqlite.hpp"

#include "pipeweaver/base/sqlite.hpp"

namespace real_sqlite {

using pipeweaver::Sqlite;

std::string made(const std::string& sql) {
    Sqlite database("made", {.what = "cannot be made"});
    database.run(sql);
    return database.serialized();
}

std::vector<std::string> rows(std::string_view bytes, const std::string& sql) {
    const Sqlite database("read", {.what = "cannot be read"}, bytes);
    std::vector<std::string> all;
    const auto add = [](void* to, int count, char** values, char**) {
        std::string& row = static_cast<std::vector<std::string>*>(to)->emplace_back();
        for (int i = 0; i < count; ++i) row.append(values[i] != nullptr ? values[i] : "").append("|");
        return 0;
    };
    database.check(sqlite3_exec(database.raw(), sql.c_str(), add, &all, nullptr));
    return all;
}

}  // namespace real_sqlite
