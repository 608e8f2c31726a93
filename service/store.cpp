#include "service/store.hpp"

#include "pipeweaver/base/files.hpp"

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace pipeweaver::service {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t application_id = 0x50575356;  // "PWSV"
constexpr std::int64_t schema_version = 2;

const std::string schema = R"(
CREATE TABLE session(
  name TEXT PRIMARY KEY, asked_sha256 TEXT NOT NULL, kept BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE plan(
  id INTEGER PRIMARY KEY, session TEXT NOT NULL, step INTEGER NOT NULL, samples_sha256 TEXT NOT NULL,
  samples BLOB NOT NULL, how TEXT NOT NULL, strategy TEXT NOT NULL, makespan_ns INTEGER NOT NULL,
  lower_bound_ns INTEGER NOT NULL, step_ns INTEGER NOT NULL, rounds INTEGER NOT NULL, bytes INTEGER NOT NULL,
  planning_ns INTEGER NOT NULL DEFAULT 0, UNIQUE(session, step)) STRICT;
CREATE TABLE part(
  plan INTEGER NOT NULL, name TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY(plan, name)) STRICT;
)";

const std::string since_version_1 = "ALTER TABLE plan ADD COLUMN planning_ns INTEGER NOT NULL DEFAULT 0";

// File systems of other hosts' disks, where SQLite's write-ahead log cannot be shared: NFS, SMB, CIFS, SMB2, Lustre,
// FUSE.
bool is_of_a_network(const std::string& folder) {
    struct statfs about {};
    if (::statfs(folder.c_str(), &about) != 0) return true;
    constexpr std::array<std::uint32_t, 6> types{0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x0bd00bd0, 0x65735546};
    for (const std::uint32_t type : types)
        if (static_cast<std::uint32_t>(about.f_type) == type) return true;
    return false;
}

bool is_sound(const Sqlite& database) {
    Statement check(database, "PRAGMA quick_check(1)");
    return check.step() && check.text(0) == "ok";
}

void require_sound(const Sqlite& database, const std::string& path, Duration patience) {
    const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
    database.check(sqlite3_busy_timeout(database.raw(), static_cast<int>(most)));
    const int busy = sqlite3_exec(database.raw(), "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT", nullptr,
                                  nullptr, nullptr);
    if (busy == SQLITE_BUSY || busy == SQLITE_LOCKED)
        fail(ErrorKind::io, "{}: another server has it, or somebody has locked it; one folder is for one server", path);
    database.check(busy);
    const std::int64_t version = pragma(database, "user_version");
    const bool ours = pragma(database, "application_id") == application_id;
    if (ours && version > schema_version)
        fail(ErrorKind::io, "{}: is of a newer pipeweaver (format {}, this one knows {})", path, version,
             schema_version);
    if (!ours && pragma(database, "schema_version") != 0) fail(ErrorKind::input, "{}: is no state of a server", path);
    if (!is_sound(database)) fail(ErrorKind::input, "{}: is damaged", path);
}

// Throws Error{input} where it is damaged, Error{io} where another server has it, or it cannot be read now.
Sqlite open_file(const std::string& path, Duration patience) {
    auto database = Sqlite::in_file(path, {"cannot be used"});
    try {
        require_sound(database, path, patience);
    } catch (const Error& error) {
        const int why = sqlite3_errcode(database.raw()) & 0xff;
        if (why == SQLITE_CORRUPT || why == SQLITE_NOTADB) fail(ErrorKind::input, "{}", error.what());
        throw;
    }
    return database;
}

// A folder and a file that are made here are for their owner alone: samples are in them.
void make_private(const std::string& folder, const std::string& file) {
    std::error_code error;
    const bool is_new = fs::create_directories(folder, error);
    if (is_new && !error) fs::permissions(folder, fs::perms::owner_all, error);
    if (error) fail(ErrorKind::io, "{}: cannot be made: {}", folder, error.message());
    const int made = ::open(file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (made >= 0) ::close(made);
}

std::string free_name(const std::string& path) {
    for (int n = 1;; ++n) {
        std::string name = fmt::format("{}.damaged-{}", path, n);
        if (!fs::exists(name)) return name;
    }
}

// What is damaged is moved aside with its log, never emptied.
std::string move_aside(const std::string& path) {
    std::string aside = free_name(path);
    fs::rename(path, aside);
    for (const std::string_view log : {"-wal", "-journal"}) {
        std::error_code none;
        fs::rename(fmt::format("{}{}", path, log), fmt::format("{}{}", aside, log), none);
    }
    return aside;
}

Sqlite open_in(const std::string& folder, std::optional<std::string>& moved, Duration patience) {
    if (folder.empty()) return {"the server's state", {"cannot be used"}};
    const std::string path = (fs::path(folder) / "state.sqlite").string();
    make_private(folder, path);
    try {
        return open_file(path, patience);
    } catch (const Error& damaged) {
        if (damaged.kind() != ErrorKind::input) throw;
        moved = fmt::format("{}; moved to {}, and begun anew", damaged.what(), move_aside(path));
    }
    make_private(folder, path);
    return open_file(path, patience);
}

// A transaction that is taken back unless it is committed.
class Transaction {
public:
    explicit Transaction(Sqlite& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction() {
        if (!done_) sqlite3_exec(database_.raw(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
    void commit() {
        database_.run("COMMIT");
        done_ = true;
    }

private:
    Sqlite& database_;
    bool done_ = false;
};

std::int64_t integer_of(const Sqlite& database, const std::string& sql) {
    Statement statement(database, sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::int64_t stored_bytes(const Sqlite& database) {
    return integer_of(database,
                      "SELECT (SELECT coalesce(sum(bytes), 0) FROM plan) + "
                      "(SELECT coalesce(sum(length(kept)), 0) FROM session)");
}

}  // namespace

Store::Store(const std::string& folder, Retention retention, std::optional<std::string>& moved, Duration patience)
    : database_(open_in(folder, moved, patience)), retention_(retention) {
    prepare(folder);
    bytes_ = stored_bytes(database_);
}

void Store::prepare(const std::string& folder) {
    const std::int64_t version = pragma(database_, "user_version");
    if (!folder.empty())
        database_.run(is_of_a_network(folder) ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL");
    database_.run("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4096; PRAGMA journal_size_limit = 67108864");
    if (version == schema_version) return;
    Transaction transaction(database_);
    database_.run(version == 0 ? schema : since_version_1);
    database_.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, schema_version));
    transaction.commit();
}

namespace {

// What was stored, which was gzip: where it is that no longer, the disk has lost it.
std::string read_back(const std::string& blob) {
    try {
        return gunzip(blob);
    } catch (const Error& error) {
        fail(ErrorKind::io, "the server's state is damaged: {}", error.what());
    }
}

StoredSession session_of(const Statement& row) {
    StoredSession session{std::string(row.text(0)), std::string(row.text(1)), {}};
    try {
        session.kept = read_back(row.blob(2));
    } catch (const Error&) {  // of others more is left
    }
    return session;
}

}  // namespace

std::vector<StoredSession> Store::sessions() const {
    const std::lock_guard lock(mutex_);
    std::vector<StoredSession> all;
    Statement statement(database_, "SELECT name, asked_sha256, kept FROM session ORDER BY name");
    while (statement.step()) all.push_back(session_of(statement));
    return all;
}

void Store::add(const StoredSession& session) {
    const std::string kept = gzip(session.kept);
    const std::lock_guard lock(mutex_);
    Statement statement(database_, "INSERT OR REPLACE INTO session VALUES(?, ?, ?)");
    statement.bind(1, session.name);
    statement.bind(2, session.asked_sha256);
    statement.bind_blob(3, kept);
    statement.step();
    bytes_ = stored_bytes(database_);
}

void Store::remove_session(const std::string& name) {
    const std::lock_guard lock(mutex_);
    Transaction transaction(database_);
    for (const char* sql : {"DELETE FROM part WHERE plan IN (SELECT id FROM plan WHERE session = ?)",
                            "DELETE FROM plan WHERE session = ?", "DELETE FROM session WHERE name = ?"}) {
        Statement statement(database_, sql);
        statement.bind(1, name);
        statement.step();
    }
    transaction.commit();
    bytes_ = stored_bytes(database_);
}

void Store::add(const std::string& session, const StoredPlan& plan, const std::vector<Part>& parts) {
    const std::string samples = gzip(plan.samples, Zip::soon);
    std::vector<std::string> zipped;
    auto bytes = static_cast<std::int64_t>(samples.size());
    for (const Part& part : parts) {
        zipped.push_back(gzip(part.content, Zip::soon));
        bytes += static_cast<std::int64_t>(zipped.back().size());
    }
    const std::lock_guard lock(mutex_);
    Transaction transaction(database_);
    Statement into(database_, "INSERT INTO plan VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    into.bind(1, session);
    into.bind(2, plan.step);
    into.bind(3, plan.samples_sha256);
    into.bind_blob(4, samples);
    into.bind(5, plan.how);
    into.bind(6, plan.strategy);
    into.bind(7, plan.makespan_ns);
    into.bind(8, plan.lower_bound_ns);
    into.bind(9, plan.step_ns);
    into.bind(10, static_cast<std::int64_t>(plan.rounds));
    into.bind(11, bytes);
    into.bind(12, plan.planning_ns);
    into.step();
    const std::int64_t id = sqlite3_last_insert_rowid(database_.raw());
    Statement part(database_, "INSERT INTO part VALUES(?, ?, ?)");
    for (std::size_t i = 0; i < parts.size(); ++i) {
        part.bind(1, id);
        part.bind(2, parts[i].name);
        part.bind_blob(3, zipped[i]);
        part.step();
        part.reset();
    }
    const std::int64_t left = forget_old(session, bytes_ + bytes);
    transaction.commit();
    bytes_ = left;
}

// Returns the bytes that are left of `bytes`.
std::int64_t Store::forget_old(const std::string& session, std::int64_t bytes) {
    const auto forget = [&](std::int64_t id) {
        for (const char* sql : {"DELETE FROM part WHERE plan = ?", "DELETE FROM plan WHERE id = ?"}) {
            Statement statement(database_, sql);
            statement.bind(1, id);
            statement.step();
        }
    };
    Statement too_many(database_, "SELECT id, bytes FROM plan WHERE session = ? ORDER BY id DESC LIMIT -1 OFFSET ?");
    too_many.bind(1, session);
    too_many.bind(2, static_cast<std::int64_t>(retention_.plans_of_session));
    std::vector<std::pair<std::int64_t, std::int64_t>> old;
    while (too_many.step()) old.emplace_back(too_many.integer(0), too_many.integer(1));
    for (const auto& [id, size] : old) {
        forget(id);
        bytes -= size;
    }
    while (bytes > retention_.bytes) {
        // The newest was not served yet.
        Statement oldest(database_,
                         "SELECT id, bytes FROM plan WHERE id < (SELECT max(id) FROM plan) ORDER BY id LIMIT 1");
        if (!oldest.step()) break;
        bytes -= oldest.integer(1);
        forget(oldest.integer(0));
    }
    return bytes;
}

namespace {

std::optional<StoredPlan> read_plan(const Sqlite& database, const std::string& columns, const std::string& session,
                                    std::int64_t step) {
    Statement statement(database,
                        "SELECT step, samples_sha256, how, strategy, makespan_ns, lower_bound_ns, step_ns, "
                        "rounds, planning_ns" +
                            columns + " FROM plan WHERE session = ? AND step = ?");
    statement.bind(1, session);
    statement.bind(2, step);
    if (!statement.step()) return std::nullopt;
    StoredPlan plan;
    plan.step = statement.integer(0);
    plan.samples_sha256 = statement.text(1);
    plan.how = statement.text(2);
    plan.strategy = statement.text(3);
    plan.makespan_ns = statement.integer(4);
    plan.lower_bound_ns = statement.integer(5);
    plan.step_ns = statement.integer(6);
    plan.rounds = static_cast<std::uint64_t>(statement.integer(7));
    plan.planning_ns = statement.integer(8);
    if (!columns.empty()) plan.samples = read_back(statement.blob(9));
    return plan;
}

}  // namespace

std::optional<StoredPlan> Store::plan(const std::string& session, std::int64_t step) const {
    const std::lock_guard lock(mutex_);
    return read_plan(database_, "", session, step);
}

std::optional<StoredPlan> Store::plan_with_samples(const std::string& session, std::int64_t step) const {
    const std::lock_guard lock(mutex_);
    return read_plan(database_, ", samples", session, step);
}

namespace {

// The statement, whose first two places are session and step.
Statement of_step(const Sqlite& database, const std::string& sql, const std::string& session, std::int64_t step) {
    Statement statement(database, sql);
    statement.bind(1, session);
    statement.bind(2, step);
    return statement;
}

const std::string parts_of_step = " FROM part JOIN plan ON part.plan = plan.id WHERE session = ? AND step = ?";

}  // namespace

std::optional<std::string> Store::zipped_part(const std::string& session, std::int64_t step,
                                              const std::string& part) const {
    const std::lock_guard lock(mutex_);
    auto statement = of_step(database_, "SELECT content" + parts_of_step + " AND part.name = ?", session, step);
    statement.bind(3, part);
    return statement.step() ? std::optional(statement.blob(0)) : std::nullopt;
}

std::vector<std::string> Store::part_names(const std::string& session, std::int64_t step) const {
    const std::lock_guard lock(mutex_);
    auto statement = of_step(database_, "SELECT part.name" + parts_of_step + " ORDER BY part.name", session, step);
    std::vector<std::string> names;
    while (statement.step()) names.emplace_back(statement.text(0));
    return names;
}

std::vector<std::int64_t> Store::steps(const std::string& session, std::size_t most) const {
    const std::lock_guard lock(mutex_);
    Statement statement(database_, "SELECT step FROM plan WHERE session = ? ORDER BY id DESC LIMIT ?");
    statement.bind(1, session);
    statement.bind(2, static_cast<std::int64_t>(most));
    std::vector<std::int64_t> steps;
    while (statement.step()) steps.push_back(statement.integer(0));
    return steps;
}

}  // namespace pipeweaver::service
