#include "service/workers.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::service;
using Clock = std::chrono::steady_clock;

namespace {

// Keeps a worker until it is let go.
struct Gate {
    std::promise<void> begun, open;
    std::shared_future<void> opened = open.get_future().share();

    Workers::Task task() {
        // The gate may be gone when the task ends.
        return [this, until = opened] {
            begun.set_value();
            until.wait();
        };
    }
};

}  // namespace

TEST_CASE("what is due first runs first, and what must be there soon before it") {
    Workers workers(1);
    Gate gate;
    workers.soon(gate.task());
    gate.begun.get_future().wait();
    std::string order;
    std::promise<void> done;
    const TimePoint now = Clock::now();
    workers.by(now + std::chrono::hours(2), [&] { order += "later "; });
    workers.by(TimePoint::max(), [&] {
        order += "any";
        done.set_value();
    });
    workers.by(now + std::chrono::hours(1), [&] { order += "sooner "; });
    workers.soon([&] { order += "soon "; });
    CHECK(workers.waiting() == 4);
    gate.open.set_value();
    done.get_future().wait();
    CHECK(order == "soon sooner later any");
}

TEST_CASE("of what waits the highest priority runs first, of what is late that, too, and before all that is not") {
    Workers workers(1);
    Gate gate;
    workers.soon(gate.task());
    gate.begun.get_future().wait();
    std::string order;
    std::promise<void> done;
    const TimePoint now = Clock::now();
    const auto by = [&](TimePoint due, const std::string& name, int priority) {
        workers.by(
            due, [&order, name] { order += name + " "; }, priority);
    };
    by(now + std::chrono::hours(1), "b1", 0);
    by(now + std::chrono::hours(3), "a3", 7);
    by(now + std::chrono::hours(2), "a2", 7);
    by(now - std::chrono::seconds(2), "late", 0);
    by(now - std::chrono::seconds(1), "late7", 7);
    workers.by(TimePoint::max(), [&] { done.set_value(); });
    gate.open.set_value();
    done.get_future().wait();
    CHECK(order == "late7 late a2 a3 b1 ");
}

TEST_CASE("what must be there soon runs between two rounds of what runs") {
    Workers workers(1);
    std::promise<std::string> done;
    std::string order;
    std::atomic<bool> last = false;
    workers.by(TimePoint::max(), [&] {
        const auto execute = workers.executor();
        execute(2, [&](std::size_t i) { order += "a" + std::to_string(i); });
        workers.soon([&] { order += "!"; });
        workers.by(Clock::now() - std::chrono::seconds(1), [&] { order += "late"; });
        workers.by(Clock::now() + std::chrono::hours(1), [&] { last = true; });
        execute(2, [&](std::size_t i) { order += "b" + std::to_string(i); });
        done.set_value(order);
    });
    CHECK(done.get_future().get() == "a0a1!lateb0b1");
    while (!last) std::this_thread::yield();  // it runs when the thread is free
}

TEST_CASE("what waits can be moved and dropped, until it runs") {
    Workers workers(1);
    Gate gate;
    workers.soon(gate.task());
    gate.begun.get_future().wait();
    std::string order;
    std::promise<void> done;
    const TimePoint now = Clock::now();
    const auto first = workers.by(now + std::chrono::hours(1), [&] { order += "first "; });
    const auto second = workers.by(now + std::chrono::hours(2), [&] { order += "second "; });
    const auto third = workers.by(now + std::chrono::hours(2), [&] { order += "third "; });
    const auto last = workers.by(TimePoint::max(), [&] { done.set_value(); });
    workers.move(first, now + std::chrono::hours(3));
    CHECK(workers.drop(third));
    CHECK_FALSE(workers.drop(third));
    workers.move(third, now);
    CHECK(workers.waiting() == 3);
    gate.open.set_value();
    done.get_future().wait();
    CHECK(order == "second first ");
    for (const auto ticket : {first, second, last}) CHECK_FALSE(workers.drop(ticket));
}

TEST_CASE("what is never due has its turn, too, however much is due") {
    for (const std::size_t threads : {1U, 3U}) {
        Workers workers(threads, std::chrono::milliseconds(1));
        std::atomic<bool> ran = false;
        // Each begins the next.
        std::function<void()> due = [&] {
            if (!ran) workers.by(Clock::now() + std::chrono::hours(1), due);
        };
        for (std::size_t i = 0; i < 2 * threads; ++i) workers.by(Clock::now() + std::chrono::hours(1), due);
        std::promise<void> done;
        workers.by(TimePoint::max(), [&] {
            ran = true;
            done.set_value();
        });
        done.get_future().wait();
        while (workers.waiting() > 0) std::this_thread::yield();
    }
}

TEST_CASE("beside a task that is never due another thread goes on with what is") {
    Workers workers(2);
    std::promise<void> due;
    std::string order;
    std::promise<std::string> done;
    workers.by(TimePoint::max(), [&] {
        workers.by(Clock::now() + std::chrono::hours(1), [&] { due.set_value(); });
        due.get_future().wait();
        workers.patient_executor()(1, [&](std::size_t) { order += "."; });
        done.set_value(order);
    });
    CHECK(done.get_future().get() == ".");
}

TEST_CASE("a task that is never due lets one that is go first before each of its rounds") {
    Workers workers(1);
    std::string order;
    std::promise<std::string> done;
    workers.by(TimePoint::max(), [&] {
        const auto execute = workers.patient_executor();
        for (const char* const name : {"a", "b"})
            workers.by(Clock::now() + std::chrono::hours(1), [&order, name] { order += name; });
        workers.by(TimePoint::max(), [&] { order += "never"; });
        for (int round = 0; round < 3; ++round) execute(1, [&](std::size_t) { order += "."; });
        done.set_value(order);
    });
    CHECK(done.get_future().get() == "a.b..");
}

TEST_CASE("threads without work help with rounds, and every job runs once") {
    Workers workers(4);
    std::promise<std::set<std::thread::id>> done;
    workers.by(TimePoint::max(), [&] {
        std::set<std::thread::id> threads;
        // Until another thread has had a core to help with, at the latest in the time of many rounds.
        for (int round = 0; round < 200 || (threads.size() == 1 && round < 20'000); ++round) {
            std::vector<int> times(64);
            std::vector<std::thread::id> by(64);
            workers.executor()(64, [&](std::size_t i) {
                ++times[i];
                by[i] = std::this_thread::get_id();
                std::this_thread::sleep_for(std::chrono::microseconds(20));
            });
            CHECK(times == std::vector<int>(64, 1));
            threads.insert(by.begin(), by.end());
        }
        done.set_value(threads);
    });
    const auto threads = done.get_future().get();
    CHECK(threads.size() > 1);
    CHECK(threads.size() <= 4);
}

TEST_CASE("a task yields when it has had its share of the time that those who wait have") {
    Workers workers(1);
    Gate gate;
    workers.soon(gate.task());
    gate.begun.get_future().wait();
    const TimePoint begun = Clock::now() - std::chrono::milliseconds(100);
    CHECK_FALSE(workers.must_yield(begun));  // nobody waits
    workers.by(TimePoint::max(), [] {});
    CHECK_FALSE(workers.must_yield(begun));  // who waits has no deadline
    workers.by(begun + std::chrono::hours(10), [] {});
    CHECK_FALSE(workers.must_yield(begun));  // half of ten hours are its
    workers.by(begun + std::chrono::milliseconds(150), [] {});
    CHECK(workers.must_yield(begun));  // 75 ms were
    gate.open.set_value();
}

namespace {

// Whether a task that waited ran, of workers whose end was asked for so long before the first task ended, about.
bool runs_what_waits(std::chrono::milliseconds before) {
    std::atomic<bool> ran = false, ending = false;
    auto workers = std::make_unique<Workers>(1);
    Gate gate;
    workers->soon(gate.task());
    gate.begun.get_future().wait();
    workers->by(TimePoint::max(), [&] { ran = true; });
    std::thread opener([&] {
        ending.wait(false);
        std::this_thread::sleep_for(before);
        gate.open.set_value();
    });
    ending = true;
    ending.notify_one();
    workers.reset();
    opener.join();
    return ran;
}

}  // namespace

TEST_CASE("what waits when the workers end is dropped") {
    // A busy machine may let the first task end before the end was asked for: then the other rightly ran.
    bool dropped = false;
    for (const int ms : {10, 100, 1'000, 10'000}) dropped = dropped || !runs_what_waits(std::chrono::milliseconds(ms));
    CHECK(dropped);
}
