#include "pipeweaver/planner/session_queue.hpp"

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <future>
#include <thread>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using namespace std::chrono_literals;
using testing::small_request;

namespace {

const Clock real_clock = [watch = Stopwatch()] { return watch.elapsed(); };

Executor one_thread() { return in_order; }

// Of a job whose searches end when they are told to.
std::shared_ptr<const Session> endless_session() {
    auto first = small_request();
    const auto dip = partition::partitioner("dip").make(*first.job.setup, first.batch.microbatches, 0);
    const Plan plan = testing::planned(testing::on_partition(first, dip), in_order,
                                       {.targets = false, .robustness = false, .opponents = false});
    first.job.max_rounds.reset();
    return std::make_shared<const Session>(first.job, plan);
}

const std::shared_ptr<const Session>& session() {
    static const auto made = endless_session();
    return made;
}

auto batch_of(const std::vector<int>& images = {5, 0, 2, 9, 1, 4, 0, 7}) {
    auto made = small_request(1, images);
    auto batch = session()->job().batch("next", std::move(made.batch.samples));
    batch.microbatches = std::move(made.batch.microbatches);
    return batch;
}

SessionQueue a_queue() { return {session(), one_thread, real_clock}; }

}  // namespace

TEST_CASE("of two batches that wait, the first has a plan by its deadline, and the second is planned after it") {
    std::promise<void> begin;  // outlives the queue, whose thread waits for it
    bool in_order_of_submission = false;
    SessionQueue queue = a_queue();
    const auto first = queue.submit([&] {
        begin.get_future().wait();
        return batch_of({9, 1, 0, 4, 7, 2, 12, 3});
    });
    const auto second = queue.submit([&] {
        in_order_of_submission = first->done();
        return batch_of();
    });
    const auto third = queue.submit([] { return batch_of(); });
    CHECK(!first->done());
    CHECK(!second->done());
    CHECK(third->cancel());
    begin.set_value();

    const auto in_time = first->result(100ms);
    REQUIRE(in_time);
    CHECK(in_time->plan.makespan >= in_time->plan.lower_bound);
    const auto best = first->result();  // the deadline has told the search to end
    REQUIRE(first->draft());
    CHECK(best->plan.makespan <= first->draft()->plan.makespan);
    CHECK(best->took >= first->draft()->took);
    CHECK(best != first->draft());  // what the search found, which the draft was there before
    CHECK(!first->cancel());

    const auto soon = second->result(0ms);
    REQUIRE(soon);
    CHECK(in_order_of_submission);
    CHECK(soon->batch.name == "next");
    CHECK(session()->by_policy(soon->batch, in_order).makespan == second->draft()->plan.makespan);

    CHECK(third->cancelled());
    CHECK(third->result() == nullptr);
    CHECK(third->draft() == nullptr);
}

TEST_CASE("a budget ends a search, and a queue that was idle plans again") {
    SessionQueue queue = a_queue();
    for (int i = 0; i < 3; ++i) {
        CHECK(queue.submit([] { return batch_of(); }, 20ms)->result()->plan.replicas.size() == 1);
        std::this_thread::sleep_for(20ms);  // its thread has seen that nothing waits
    }
}

TEST_CASE("what is wrong with a batch is thrown by its own result alone") {
    SessionQueue queue = a_queue();
    const auto bad = queue.submit([]() -> decltype(batch_of()) { fail(ErrorKind::input, "no such batch"); });
    const auto good = queue.submit([] { return batch_of(); });
    for (int i = 0; i < 2; ++i) CHECK_THROWS_WITH_AS(static_cast<void>(bad->result(0ms)), "no such batch", Error);
    CHECK(bad->done());
    CHECK(!bad->cancel());
    CHECK(good->result(0ms) != nullptr);
}

TEST_CASE("a queue that is closed, or goes, cancels what is not done") {
    std::shared_ptr<Planned> running, after;
    {
        std::promise<void> began, goes_on;  // outlive the queue, whose thread waits for them
        SessionQueue queue = a_queue();
        running = queue.submit([&] {
            began.set_value();
            goes_on.get_future().wait();
            return batch_of();
        });
        const auto waiting = queue.submit([] { return batch_of(); });
        began.get_future().wait();
        queue.close();
        goes_on.set_value();
        CHECK(running->result() == nullptr);
        CHECK(waiting->cancelled());
        CHECK(waiting->cancel());
        after = queue.submit([] { return batch_of(); });
    }
    CHECK(after->done());
    CHECK(running->cancelled());
}

TEST_CASE("what is called meanwhile ends a wait by what it throws, and the plan is still made") {
    SessionQueue queue = a_queue();
    const auto planned = queue.submit([] { return batch_of(); });
    const auto interrupted = [] { throw std::runtime_error("interrupted"); };
    CHECK_THROWS_WITH(static_cast<void>(planned->result({}, interrupted)), "interrupted");
    CHECK(planned->result(0ms) != nullptr);
}

TEST_CASE("of what waits the highest priority is planned first, and of equal ones what was submitted first") {
    std::promise<void> begin;  // outlives the queue, whose thread waits for it
    std::vector<int> order;    // of the queue's thread, until all is done
    SessionQueue queue = a_queue();
    const auto first = queue.submit([&] {
        begin.get_future().wait();
        return batch_of();
    });
    const auto numbered = [&](int number) {
        return [&order, number] {
            order.push_back(number);
            return batch_of();
        };
    };
    std::vector<std::shared_ptr<Planned>> all;
    const std::vector<int> priorities{0, 5, 0, 100, 5};
    all.reserve(priorities.size());
    for (int i = 0; i < 5; ++i) all.push_back(queue.submit(numbered(i), 1ms, priorities[static_cast<std::size_t>(i)]));
    begin.set_value();
    static_cast<void>(first->result(0ms));
    for (const auto& one : all) CHECK(one->result());
    CHECK(order == std::vector<int>{3, 1, 4, 0, 2});
}
