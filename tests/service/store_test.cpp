#include "service/store.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <thread>

using namespace pipeweaver;
using namespace pipeweaver::service;
namespace fs = std::filesystem;

namespace {

StoredPlan plan_of(std::int64_t step) {
    StoredPlan plan;
    plan.step = step;
    plan.samples_sha256 = "sha of " + std::to_string(step);
    plan.samples = "samples of " + std::to_string(step);
    plan.how = "[[1,null,2,3]]";
    plan.strategy = "groups";
    plan.makespan_ns = 110 + step;
    plan.lower_bound_ns = 100;
    plan.step_ns = 120 + step;
    plan.rounds = 7;
    plan.planning_ns = 5'000'000 + step;
    return plan;
}

std::vector<Part> parts_of(std::int64_t step) {
    return {{"plan", "plan " + std::to_string(step)}, {"replicas/0/solution", std::string(1000, 'x')}};
}

// What cannot be zipped.
std::string noise(std::size_t bytes) {
    std::string all;
    for (std::uint64_t x = 1; all.size() < bytes; x = x * 6364136223846793005U + 1442695040888963407U)
        all += static_cast<char>(x >> 56);
    return all;
}

std::string part(const Store& store, std::int64_t step, const std::string& name) {
    const auto zipped = store.zipped_part("job", step, name);
    return zipped ? gunzip(*zipped) : "none";
}

struct Opened {
    std::optional<std::string> moved;
    Store store;

    explicit Opened(const std::string& folder, Retention retention = {}) : store(folder, retention, moved) {}
};

}  // namespace

TEST_CASE("what was stored is there after the store is opened again, unchanged") {
    const testing::TemporaryFolder folder("store");
    {
        Opened first(folder.path().string());
        first.store.add({"job", "sha", "kept"});
        first.store.add({"other", "sha2", "kept2"});
        first.store.add("job", plan_of(3), parts_of(3));
    }
    const Opened again(folder.path().string());
    CHECK(!again.moved);
    REQUIRE(again.store.sessions().size() == 2);
    CHECK(again.store.sessions().front().name == "job");
    CHECK(again.store.sessions().front().kept == "kept");
    const auto plan = again.store.plan_with_samples("job", 3);
    REQUIRE(plan);
    CHECK(plan->samples == "samples of 3");
    CHECK(plan->how == "[[1,null,2,3]]");
    CHECK(plan->makespan_ns == 113);
    CHECK(plan->rounds == 7);
    CHECK(again.store.plan("job", 3)->samples.empty());
    CHECK(part(again.store, 3, "plan") == "plan 3");
    CHECK(part(again.store, 3, "nothing") == "none");
    CHECK(again.store.part_names("job", 3) == std::vector<std::string>{"plan", "replicas/0/solution"});
    CHECK(!again.store.plan("job", 4));
    CHECK(!again.store.plan("other", 3));
}

TEST_CASE("a session that is removed takes its plans along and no others") {
    Opened one("");
    for (const char* name : {"job", "other"}) {
        one.store.add({name, "sha", "kept"});
        one.store.add(name, plan_of(1), parts_of(1));
    }
    one.store.remove_session("other");
    CHECK(one.store.sessions().size() == 1);
    CHECK(!one.store.plan("other", 1));
    CHECK(one.store.part_names("other", 1).empty());
    CHECK(part(one.store, 1, "plan") == "plan 1");
}

TEST_CASE("of a session so many plans are kept, and of all so many bytes, the oldest go first") {
    Opened by_count("", {.plans_of_session = 3});
    for (std::int64_t step = 0; step < 5; ++step) by_count.store.add("job", plan_of(step), parts_of(step));
    by_count.store.add("other", plan_of(9), parts_of(9));
    CHECK(by_count.store.steps("job", 10) == std::vector<std::int64_t>{4, 3, 2});
    CHECK(by_count.store.steps("job", 1) == std::vector<std::int64_t>{4});
    CHECK(by_count.store.steps("other", 10).size() == 1);
    CHECK(part(by_count.store, 1, "plan") == "none");

    Opened by_size("", {.bytes = 200});
    for (std::int64_t step = 0; step < 20; ++step) by_size.store.add("job", plan_of(step), parts_of(step));
    const auto left = by_size.store.steps("job", 100);
    CHECK(left.front() == 19);
    CHECK(left.size() < 20);
}

TEST_CASE("samples and sessions count, and the newest plan is kept whatever its size") {
    Opened small("", {.bytes = 1});
    for (std::int64_t step = 0; step < 3; ++step) small.store.add("job", plan_of(step), parts_of(step));
    CHECK(small.store.steps("job", 10) == std::vector<std::int64_t>{2});

    const auto noisy = [](std::int64_t step) {
        StoredPlan plan = plan_of(step);
        plan.samples = noise(3000);
        return plan;
    };
    Opened by_samples("", {.bytes = 10'000});
    for (std::int64_t step = 0; step < 6; ++step) by_samples.store.add("job", noisy(step), parts_of(step));
    CHECK(by_samples.store.steps("job", 10) == std::vector<std::int64_t>{5, 4, 3});
    by_samples.store.add({"job", "sha", noise(3000)});
    by_samples.store.add("job", noisy(6), parts_of(6));
    CHECK(by_samples.store.steps("job", 10) == std::vector<std::int64_t>{6, 5});
}

TEST_CASE("what is made is for its owner alone, what is there stays as it is") {
    const testing::TemporaryFolder outer("store");
    const auto rights = [](const fs::path& path) { return fs::status(path).permissions(); };
    const fs::path folder = outer.path() / "state";
    {
        const Opened one(folder.string());
        CHECK(rights(folder) == fs::perms::owner_all);
        for (const auto& file : fs::directory_iterator(folder))
            CHECK(rights(file) == (fs::perms::owner_read | fs::perms::owner_write));
    }
    const fs::perms shared = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec;
    fs::permissions(folder, shared);
    const Opened again(folder.string());
    CHECK(rights(folder) == shared);
}

TEST_CASE("a plan whose step is there is refused whole") {
    Opened one("");
    one.store.add("job", plan_of(1), parts_of(1));
    CHECK_THROWS_AS(one.store.add("job", plan_of(1), {{"plan", "another"}}), Error);
    CHECK(part(one.store, 1, "plan") == "plan 1");
    one.store.add("job", plan_of(2), parts_of(2));
    CHECK(part(one.store, 2, "plan") == "plan 2");
}

TEST_CASE("a damaged state is moved aside with a message, never emptied") {
    const testing::TemporaryFolder folder("store");
    const fs::path file = folder.path() / "state.sqlite";
    SUBCASE("no database") { std::ofstream(file) << std::string(8192, 'z'); }
    SUBCASE("a database with damaged pages") {
        {
            Opened one(folder.path().string());
            for (std::int64_t step = 0; step < 50; ++step) one.store.add("job", plan_of(step), parts_of(step));
        }
        std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
        bytes.seekp(4096);
        bytes << std::string(20'000, '\x55');
    }
    SUBCASE("a database of something else") {
        auto other = Sqlite::in_file(file.string(), {"cannot be used"});
        other.run("CREATE TABLE mine(x)");
    }
    const auto size = fs::file_size(file);
    const Opened again(folder.path().string());
    REQUIRE(again.moved);
    CHECK(again.moved->find("state.sqlite") != std::string::npos);
    CHECK(again.moved->find("damaged-1") != std::string::npos);
    CHECK(again.store.sessions().empty());
    CHECK(fs::file_size(file.string() + ".damaged-1") == size);
}

TEST_CASE("a state that cannot be read now stays where it is") {
    const testing::TemporaryFolder folder("store");
    const fs::path file = folder.path() / "state.sqlite";
    {
        Opened one(folder.path().string());
        one.store.add("job", plan_of(1), parts_of(1));
    }
    fs::create_directory(file.string() + "-wal");  // where its log would be
    CHECK_THROWS_AS(Opened(folder.path().string()), Error);
    CHECK(!fs::exists(file.string() + ".damaged-1"));
    fs::remove(file.string() + "-wal");
    const Opened again(folder.path().string());
    CHECK(part(again.store, 1, "plan") == "plan 1");
}

TEST_CASE("one folder is for one server") {
    const testing::TemporaryFolder folder("store");
    const Opened one(folder.path().string());
    std::optional<std::string> moved;
    CHECK_THROWS_WITH_AS(Store(folder.path().string(), {}, moved, std::chrono::milliseconds(10)),
                         doctest::Contains("another server has it"), Error);
}

TEST_CASE("a state that somebody has locked is waited for") {
    const testing::TemporaryFolder folder("store");
    {
        Opened first(folder.path().string());
        first.store.add("job", plan_of(1), parts_of(1));
    }
    std::optional other = Sqlite::in_file((folder.path() / "state.sqlite").string(), {"cannot be locked"});
    other->run("BEGIN IMMEDIATE");
    std::optional<std::string> moved;
    CHECK_THROWS_AS(Store(folder.path().string(), {}, moved, std::chrono::milliseconds(50)), Error);
    std::jthread unlock([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        other.reset();
    });
    const Store there(folder.path().string(), {}, moved, std::chrono::minutes(1));
    CHECK(part(there, 1, "plan") == "plan 1");
    CHECK(!moved);
}

TEST_CASE("a state of the first format is read and goes on") {
    const testing::TemporaryFolder folder("store");
    {
        Opened first(folder.path().string());
        first.store.add("job", plan_of(1), parts_of(1));
    }
    Sqlite::in_file((folder.path() / "state.sqlite").string(), {"cannot be changed"})
        .run("ALTER TABLE plan DROP COLUMN planning_ns; PRAGMA user_version = 1");
    for (int life = 0; life < 2; ++life) {
        Opened again(folder.path().string());
        CHECK(!again.moved);
        CHECK(again.store.plan("job", 1)->planning_ns == 0);
        CHECK(again.store.plan("job", 1)->makespan_ns == 111);
        if (life == 0) again.store.add("job", plan_of(2), parts_of(2));
        CHECK(again.store.plan("job", 2)->planning_ns == 5'000'002);
    }
}

namespace {

// No file may become larger, as on a full disk.
class FullDisk {
public:
    explicit FullDisk(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        handler_ = std::signal(SIGXFSZ, SIG_IGN);
        const struct rlimit limit { bytes, before_.rlim_max };
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;
    ~FullDisk() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    struct rlimit before_ {};
    void (*handler_)(int) = nullptr;
};

}  // namespace

TEST_CASE("where there is no room a plan is not stored, and what was stored stays") {
    const testing::TemporaryFolder folder("store");
    Opened one(folder.path().string());
    one.store.add("job", plan_of(1), parts_of(1));
    const std::string much = noise(400'000);
    {
        const FullDisk full(200'000);
        CHECK_THROWS_AS(one.store.add("job", plan_of(2), {{"plan", much}}), Error);
    }
    CHECK(!one.store.plan("job", 2));
    CHECK(part(one.store, 1, "plan") == "plan 1");
    one.store.add("job", plan_of(2), {{"plan", much}});
    CHECK(part(one.store, 2, "plan") == much);
}
