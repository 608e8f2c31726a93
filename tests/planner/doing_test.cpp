#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/time.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/times.hpp"

#include <doctest/doctest.h>

#include <mutex>
#include <set>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using schedule::StopReason;

TEST_CASE("jobs are counted round by round, whoever runs them") {
    for (const Executor& execute : {Executor(in_order), on_own_threads(3)}) {
        std::mutex mutex;
        std::multiset<std::size_t> numbers;
        const OnDoing on = [&](const Doing& doing) {
            const std::scoped_lock lock(mutex);
            CHECK(doing.what == "opponents");
            CHECK(doing.of == 5);
            CHECK(!doing.search);
            numbers.insert(doing.number);
        };
        const Executor telling = told(execute, on, "opponents");
        std::vector<int> ran(5);
        for (int round = 0; round < 2; ++round) telling(5, [&](std::size_t k) { ++ran[k]; });
        CHECK(ran == std::vector<int>(5, 2));
        CHECK(numbers == std::multiset<std::size_t>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
    }
}

TEST_CASE("a time that tells ends when its own does, and says whose search asks; nobody asks for no time") {
    std::vector<Doing> heard;
    const OnDoing on = [&](const Doing& doing) { heard.push_back(doing); };
    const Time time = told(testing::ended(StopReason::stopped), on, {"replica", 2, 4, {}});
    CHECK(time.fraction(0.5).stop({7, 70, Duration{12}, Duration{10}, "groups"}) == StopReason::stopped);
    REQUIRE(heard.size() == 1);
    CHECK((heard[0].what == "replica" && heard[0].number == 2 && heard[0].of == 4));
    REQUIRE(heard[0].search);
    CHECK(heard[0].search->rounds == 7);
    CHECK(time.is_over());
    CHECK(heard.size() == 1);  // no search asked
    CHECK(!told(Time(), on, {"replica", 1, 1, {}}).keep_going());
}

TEST_CASE("a plan tells what it is at: the partition, opponents, each replica's search") {
    Request request = testing::small_request(2, {5, 0, 2, 9, 1, 4, 0, 7});
    request.job.max_rounds = 1;
    std::mutex mutex;
    std::set<std::string> heard;
    Wanted wanted;
    wanted.on_doing = [&](const Doing& doing) {
        const std::scoped_lock lock(mutex);
        CHECK(doing.number <= doing.of);
        heard.insert(std::string(doing.what) + (doing.of == 2 ? " " + std::to_string(doing.number) : ""));
    };
    const Plan told = make_plan(request.job, request.batch, in_order, testing::after_questions(1'000'000), wanted);
    for (const char* what : {"partition", "opponents", "replica 1", "replica 2"}) CHECK(heard.count(what) == 1);
    wanted.on_doing = {};
    CHECK(make_plan(request.job, request.batch, in_order, {}, wanted).makespan == told.makespan);
}
