// A reader of SQLite's file format (https://www.sqlite.org/fileformat2.html), for the queries that sqlite3.h names:
// tables with rowids and without, whose rows need no overflow pages.
#include "tools/playground/stand_ins/sqlite/sqlite3.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace {

struct Value {
    std::int64_t number = 0;
    std::string_view bytes{};
    bool is_number = false;
};

struct Row {
    std::string_view record{};
    std::int64_t id = 0;
};

struct Table {
    std::size_t root = 0;
    std::vector<std::string> columns{};
    bool has_rowid = true;
};

struct Damaged : std::runtime_error {
    explicit Damaged(const std::string& what) : std::runtime_error(what) {}
};

std::int64_t big_endian(std::string_view bytes, std::size_t at, std::size_t size) {
    if (at > bytes.size() || size > bytes.size() - at) throw Damaged("it ends too early");
    std::uint64_t value = size > 0 && (static_cast<unsigned char>(bytes[at]) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
    return static_cast<std::int64_t>(value);
}

std::size_t natural(std::string_view bytes, std::size_t at, std::size_t size) {
    return static_cast<std::size_t>(big_endian(bytes, at, size) & ((std::int64_t{1} << 8 * size) - 1));
}

std::int64_t take_varint(std::string_view bytes, std::size_t& at) {
    std::uint64_t value = 0;
    for (int i = 0; i < 9; ++i) {
        const auto byte = static_cast<std::uint64_t>(natural(bytes, at++, 1));
        if (i == 8) return static_cast<std::int64_t>(value << 8U | byte);
        value = value << 7U | (byte & 0x7fU);
        if (byte < 0x80) break;
    }
    return static_cast<std::int64_t>(value);
}

std::vector<Value> values_of(std::string_view record) {
    std::size_t at = 0;
    const auto header = static_cast<std::size_t>(take_varint(record, at));
    std::size_t content = header;
    std::vector<Value> values;
    while (at < header) {
        const std::int64_t type = take_varint(record, at);
        if (type >= 12) {
            const auto size = static_cast<std::size_t>((type - 12) / 2);
            if (content > record.size() || size > record.size() - content) throw Damaged("a row ends too early");
            values.push_back({0, record.substr(content, size), false});
            content += size;
        } else if (type >= 8) {
            values.push_back({type - 8, {}, true});
        } else {
            const std::size_t size = type == 5 ? 6 : type >= 6 ? 8 : static_cast<std::size_t>(type);
            values.push_back({big_endian(record, content, size), {}, type != 0});
            content += size;
        }
    }
    return values;
}

class File {
public:
    explicit File(std::string_view bytes) : bytes_(bytes) {
        page_size_ = natural(bytes, 16, 2);
        if (page_size_ == 1) page_size_ = 65536;
        if (page_size_ < 512) throw Damaged("its pages have no size");
        usable_ = page_size_ - natural(bytes, 20, 1);
    }

    std::int64_t header(std::size_t at) const { return big_endian(bytes_, at, 4); }

    std::vector<Row> rows(std::size_t root) const {
        std::vector<Row> all;
        add_rows(root, 0, all);
        return all;
    }

private:
    void add_rows(std::size_t number, int depth, std::vector<Row>& all) const {
        constexpr int deepest = 20;
        if (number == 0 || number > bytes_.size() / page_size_ || depth > deepest) throw Damaged("a page is missing");
        const std::string_view page = bytes_.substr((number - 1) * page_size_, page_size_);
        const std::size_t start = number == 1 ? 100 : 0, kind = natural(page, start, 1);
        const bool is_inner = kind == 2 || kind == 5, is_table = kind == 5 || kind == 13;
        if (!is_inner && kind != 10 && kind != 13) throw Damaged("a page is of no known kind");
        const std::size_t cells = natural(page, start + 3, 2);
        for (std::size_t i = 0; i < cells; ++i) {
            std::size_t at = natural(page, start + (is_inner ? 12 : 8) + 2 * i, 2);
            if (is_inner) {
                add_rows(natural(page, at, 4), depth + 1, all);
                at += 4;
                if (is_table) continue;  // a rowid alone follows
            }
            all.push_back(row_at(page, at, is_table));
        }
        if (is_inner) add_rows(natural(page, start + 8, 4), depth + 1, all);
    }

    Row row_at(std::string_view page, std::size_t at, bool is_table) const {
        Row row;
        const auto size = static_cast<std::size_t>(take_varint(page, at));
        if (is_table) row.id = take_varint(page, at);
        if (size > (is_table ? usable_ - 35 : (usable_ - 12) * 64 / 255 - 23))
            throw Damaged("a row is too long to be read here");
        if (at > page.size() || size > page.size() - at) throw Damaged("a row ends too early");
        row.record = page.substr(at, size);
        return row;
    }

    std::string_view bytes_;
    std::size_t page_size_ = 0, usable_ = 0;
};

// Of "CREATE TABLE name(a INTEGER NOT NULL, b TEXT, PRIMARY KEY(a, b)) STRICT, WITHOUT ROWID".
Table table_of(std::size_t root, std::string_view sql) {
    Table table{root, {}, sql.find("WITHOUT ROWID") == std::string_view::npos};
    std::size_t at = std::min(sql.find('('), sql.size());
    while (at < sql.size() && sql[at] != ')') {
        const std::size_t begin = std::min(sql.find_first_not_of(" \n", at + 1), sql.size());
        const std::size_t end = std::min(sql.find_first_of(" ,)", begin), sql.size());
        const auto name = sql.substr(begin, end - begin);
        if (name == "PRIMARY") break;  // the table's key, after its columns
        table.columns.emplace_back(name);
        at = std::min(sql.find_first_of(",)", end), sql.size());
    }
    return table;
}

}  // namespace

struct sqlite3 {
    std::optional<File> file{};
    std::map<std::string, Table, std::less<>> tables{};
    std::string wrong{};
    sqlite3_function hand = nullptr;  ///< takes rows
};

struct sqlite3_value {
    Value value{};
    void* pointer = nullptr;
};

struct sqlite3_context {
    std::optional<std::string> wrong{};
};

struct sqlite3_stmt {
    sqlite3* database = nullptr;
    std::optional<Value> only{};  ///< of a statement whose answer is one value
    bool counts = false, hands = false;
    void* pointer = nullptr;  ///< the first of what is handed
    const Table* table = nullptr;
    std::vector<std::size_t> columns{};
    std::optional<std::size_t> condition{};
    std::vector<std::pair<std::size_t, bool>> order{};  ///< columns, and whether their largest values come first
    Value wanted{};
    std::string bound{};
    std::optional<std::vector<Row>> rows{};
    std::size_t next = 0;
    std::vector<Value> now{};
};

namespace {

int failed(sqlite3* database, std::string wrong) {
    database->wrong = std::move(wrong);
    return SQLITE_ERROR;
}

template <class Work>
int tried(sqlite3* database, Work work) {
    try {
        return work();
    } catch (const std::exception& error) {
        return failed(database, error.what());
    }
}

std::size_t column_named(const Table& table, std::string_view name) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), name);
    if (found == table.columns.end()) throw Damaged("no such column: " + std::string(name));
    return static_cast<std::size_t>(found - table.columns.begin());
}

std::string_view taken_until(std::string_view& text, std::string_view end) {
    const std::size_t at = std::min(text.find(end), text.size());
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(std::min(at + end.size(), text.size()));
    return part;
}

// The next of a list of names.
std::string_view taken_name(std::string_view& names) {
    std::string_view name = taken_until(names, ",");
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    return name;
}

void parse_order(std::string_view names, sqlite3_stmt& made) {
    constexpr std::string_view falling = " DESC";
    while (!names.empty()) {
        std::string_view name = taken_name(names);
        const bool falls = name.ends_with(falling);
        if (falls) name.remove_suffix(falling.size());
        made.order.emplace_back(column_named(*made.table, name), falls);
    }
}

void parse_select(std::string_view sql, sqlite3_stmt& made) {
    std::string_view columns = taken_until(sql, " FROM ");
    std::string_view selected = taken_until(sql, " ORDER BY "), table = taken_until(selected, " WHERE ");
    const auto found = made.database->tables.find(table);
    if (found == made.database->tables.end()) throw Damaged("no such table: " + std::string(table));
    made.table = &found->second;
    made.counts = columns == "count(*)";
    constexpr std::string_view handed = "hand(?2, ";
    made.hands = made.database->hand != nullptr && columns.starts_with(handed) && columns.ends_with(')');
    if (made.hands) columns = columns.substr(handed.size(), columns.size() - handed.size() - 1);
    while (!made.counts && !columns.empty()) made.columns.push_back(column_named(*made.table, taken_name(columns)));
    if (!selected.empty()) made.condition = column_named(*made.table, taken_until(selected, " = ?1"));
    if (!selected.empty()) throw Damaged("no more than one condition is read here");
    parse_order(sql, made);
}

std::vector<Value> read(const Table& table, const Row& row) {
    auto values = values_of(row.record);
    values.resize(std::max(values.size(), table.columns.size()));
    if (table.has_rowid && !values.front().is_number) values.front() = {row.id, {}, true};
    return values;
}

void sort_rows(sqlite3_stmt& of) {
    std::vector<std::pair<std::vector<Value>, Row>> all;
    for (const Row& row : *of.rows) all.emplace_back(read(*of.table, row), row);
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
        for (const auto& [column, falls] : of.order) {
            const Value &one = a.first[column], &other = b.first[column];
            if (one.number == other.number && one.bytes == other.bytes) continue;
            return (std::tie(one.number, one.bytes) < std::tie(other.number, other.bytes)) != falls;
        }
        return false;
    });
    std::transform(all.begin(), all.end(), of.rows->begin(), [](const auto& one) { return one.second; });
}

// Into `of.now`; false after the last.
bool take_row(sqlite3_stmt& of) {
    while (of.next < of.rows->size()) {
        const auto values = read(*of.table, (*of.rows)[of.next++]);
        if (of.condition) {
            const Value& one = values[*of.condition];
            if (of.wanted.is_number ? one.number != of.wanted.number : one.bytes != of.wanted.bytes) continue;
        }
        of.now.clear();
        for (const std::size_t column : of.columns) of.now.push_back(values[column]);
        return true;
    }
    return false;
}

int hand_rows(sqlite3_stmt& of) {
    std::vector<sqlite3_value> values(1 + of.columns.size());
    std::vector<sqlite3_value*> places;
    for (sqlite3_value& value : values) places.push_back(&value);
    values.front().pointer = of.pointer;
    sqlite3_context context;
    while (take_row(of)) {
        for (std::size_t i = 0; i < of.now.size(); ++i) values[i + 1].value = of.now[i];
        of.database->hand(&context, static_cast<int>(places.size()), places.data());
        if (context.wrong) return failed(of.database, *context.wrong);
    }
    return SQLITE_DONE;
}

int step(sqlite3_stmt& of) {
    if (of.only) return of.next++ == 0 ? (of.now = {*of.only}, SQLITE_ROW) : SQLITE_DONE;
    if (!of.rows) {
        of.rows = of.database->file->rows(of.table->root);
        if (!of.order.empty()) sort_rows(of);
    }
    if (of.counts)
        return of.next++ == 0 ? (of.now = {{static_cast<std::int64_t>(of.rows->size()), {}, true}}, SQLITE_ROW)
                              : SQLITE_DONE;
    if (of.hands) return hand_rows(of);
    return take_row(of) ? SQLITE_ROW : SQLITE_DONE;
}

const Value& column_of(const sqlite3_stmt* statement, int column) {
    return statement->now.at(static_cast<std::size_t>(column));
}

}  // namespace

int sqlite3_open_v2(const char*, sqlite3** database, int, const char*) {
    *database = new sqlite3;
    return SQLITE_OK;
}

int sqlite3_close(sqlite3* database) {
    delete database;
    return SQLITE_OK;
}

int sqlite3_exec(sqlite3* database, const char*, sqlite3_callback, void*, char**) {
    return failed(database, "nothing is written here");
}

int sqlite3_deserialize(sqlite3* database, const char*, unsigned char* bytes, sqlite3_int64 size, sqlite3_int64,
                        unsigned) {
    return tried(database, [&] {
        database->file.emplace(std::string_view(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)));
        for (const Row& row : database->file->rows(1)) {
            const auto values = values_of(row.record);
            if (values.size() == 5 && values[0].bytes == "table")
                database->tables.emplace(values[1].bytes,
                                         table_of(static_cast<std::size_t>(values[3].number), values[4].bytes));
        }
        return SQLITE_OK;
    });
}

unsigned char* sqlite3_serialize(sqlite3*, const char*, sqlite3_int64*, unsigned) { return nullptr; }
void sqlite3_free(void*) {}
const char* sqlite3_errmsg(sqlite3* database) { return database->wrong.c_str(); }

int sqlite3_prepare_v2(sqlite3* database, const char* sql, int, sqlite3_stmt** statement, const char**) {
    return tried(database, [&] {
        auto made = std::make_unique<sqlite3_stmt>();
        made->database = database;
        const std::string_view text = sql;
        if (!database->file) throw Damaged("it is empty");
        if (text == "PRAGMA application_id")
            made->only = Value{database->file->header(68), {}, true};
        else if (text == "PRAGMA user_version")
            made->only = Value{database->file->header(60), {}, true};
        else if (text.starts_with("SELECT "))
            parse_select(text.substr(7), *made);
        else if (text == "PRAGMA quick_check(1)")
            made->only = Value{0, "ok", false};
        else
            throw Damaged("it is only read here");
        *statement = made.release();
        return SQLITE_OK;
    });
}

int sqlite3_bind_int64(sqlite3_stmt* statement, int, sqlite3_int64 value) {
    statement->wanted = {value, {}, true};
    return SQLITE_OK;
}

int sqlite3_bind_text(sqlite3_stmt* statement, int, const char* text, int size, sqlite3_destructor_type) {
    statement->bound.assign(text, static_cast<std::size_t>(size));
    statement->wanted = {0, statement->bound, false};
    return SQLITE_OK;
}

int sqlite3_bind_blob64(sqlite3_stmt* statement, int, const void*, std::uint64_t, sqlite3_destructor_type) {
    return failed(statement->database, "it is only read here");
}

int sqlite3_step(sqlite3_stmt* statement) {
    return tried(statement->database, [&] { return step(*statement); });
}

int sqlite3_reset(sqlite3_stmt* statement) {
    statement->next = 0;
    return SQLITE_OK;
}

int sqlite3_finalize(sqlite3_stmt* statement) {
    delete statement;
    return SQLITE_OK;
}

sqlite3_int64 sqlite3_column_int64(sqlite3_stmt* statement, int column) { return column_of(statement, column).number; }

const unsigned char* sqlite3_column_text(sqlite3_stmt* statement, int column) {
    return reinterpret_cast<const unsigned char*>(column_of(statement, column).bytes.data());
}

const void* sqlite3_column_blob(sqlite3_stmt* statement, int column) {
    return column_of(statement, column).bytes.data();
}

int sqlite3_column_bytes(sqlite3_stmt* statement, int column) {
    return static_cast<int>(column_of(statement, column).bytes.size());
}

int sqlite3_create_function_v2(sqlite3* database, const char*, int, int, void*, sqlite3_function,
                               sqlite3_function each_row, void (*)(sqlite3_context*), sqlite3_destructor_type) {
    database->hand = each_row;
    return SQLITE_OK;
}

int sqlite3_bind_pointer(sqlite3_stmt* statement, int, void* pointer, const char*, sqlite3_destructor_type) {
    statement->pointer = pointer;
    return SQLITE_OK;
}

void* sqlite3_value_pointer(sqlite3_value* value, const char*) { return value->pointer; }
sqlite3_int64 sqlite3_value_int64(sqlite3_value* value) { return value->value.number; }
const void* sqlite3_value_blob(sqlite3_value* value) { return value->value.bytes.data(); }
int sqlite3_value_bytes(sqlite3_value* value) { return static_cast<int>(value->value.bytes.size()); }
void sqlite3_result_error(sqlite3_context* context, const char* message, int) { context->wrong = message; }
