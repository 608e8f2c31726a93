// What pipeweaver's readers ask of SQLite (include/pipeweaver/base/sqlite.hpp), over a small reader of its files. It
// writes nothing, and answers `SELECT columns FROM table [WHERE column = ?1] [ORDER BY columns]`, some of them `DESC`, and
// pragmas of the header. A function over rows is called as `SELECT hand(?2, columns) FROM ...`; the row that an aggregate
// itself is, is left out.
#pragma once

#include <cstdint>

using sqlite3_int64 = std::int64_t;
struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_context;
struct sqlite3_value;
using sqlite3_callback = int (*)(void*, int, char**, char**);
using sqlite3_destructor_type = void (*)(void*);
using sqlite3_function = void (*)(sqlite3_context*, int, sqlite3_value**);

constexpr int SQLITE_OK = 0, SQLITE_ERROR = 1, SQLITE_ROW = 100, SQLITE_DONE = 101;
constexpr int SQLITE_OPEN_READWRITE = 2, SQLITE_OPEN_CREATE = 4, SQLITE_OPEN_NOMUTEX = 0x8000;
constexpr int SQLITE_UTF8 = 1, SQLITE_DIRECTONLY = 0x80000;
constexpr unsigned SQLITE_DESERIALIZE_READONLY = 4;
constexpr sqlite3_destructor_type SQLITE_TRANSIENT = nullptr;

int sqlite3_open_v2(const char* path, sqlite3** database, int flags, const char* module);
int sqlite3_close(sqlite3* database);
int sqlite3_exec(sqlite3* database, const char* sql, sqlite3_callback callback, void* context, char** message);
int sqlite3_deserialize(sqlite3* database, const char* schema, unsigned char* bytes, sqlite3_int64 size,
                        sqlite3_int64 room, unsigned flags);
unsigned char* sqlite3_serialize(sqlite3* database, const char* schema, sqlite3_int64* size, unsigned flags);
void sqlite3_free(void* memory);
const char* sqlite3_errmsg(sqlite3* database);
int sqlite3_prepare_v2(sqlite3* database, const char* sql, int size, sqlite3_stmt** statement, const char** rest);
int sqlite3_bind_int64(sqlite3_stmt* statement, int place, sqlite3_int64 value);
int sqlite3_bind_text(sqlite3_stmt* statement, int place, const char* text, int size, sqlite3_destructor_type destroy);
int sqlite3_bind_blob64(sqlite3_stmt* statement, int place, const void* bytes, std::uint64_t size,
                        sqlite3_destructor_type destroy);
int sqlite3_step(sqlite3_stmt* statement);
int sqlite3_reset(sqlite3_stmt* statement);
int sqlite3_finalize(sqlite3_stmt* statement);
sqlite3_int64 sqlite3_column_int64(sqlite3_stmt* statement, int column);
const unsigned char* sqlite3_column_text(sqlite3_stmt* statement, int column);
const void* sqlite3_column_blob(sqlite3_stmt* statement, int column);
int sqlite3_column_bytes(sqlite3_stmt* statement, int column);
int sqlite3_create_function_v2(sqlite3* database, const char* name, int values, int encoding, void* user,
                               sqlite3_function function, sqlite3_function each_row, void (*end)(sqlite3_context*),
                               sqlite3_destructor_type destroy);
int sqlite3_bind_pointer(sqlite3_stmt* statement, int place, void* pointer, const char* type,
                         sqlite3_destructor_type destroy);
void* sqlite3_value_pointer(sqlite3_value* value, const char* type);
sqlite3_int64 sqlite3_value_int64(sqlite3_value* value);
const void* sqlite3_value_blob(sqlite3_value* value);
int sqlite3_value_bytes(sqlite3_value* value);
void sqlite3_result_error(sqlite3_context* context, const char* message, int size);
