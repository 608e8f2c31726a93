#include "pipeweaver/base/error.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "planner/replicas/plan_replica.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

// What each of four replicas was allowed of what was left of the budget, sorted.
class Parts : public Time::Source {
public:
    std::optional<schedule::StopReason> stop(const search::Progress&) override { return std::nullopt; }
    Time fraction(double part, Duration) override {
        CHECK(++asking_ == 1);  // by one thread at a time
        parts.push_back(part);
        --asking_;
        return {};
    }

    std::vector<double> parts;

private:
    std::atomic<int> asking_ = 0;
};

std::vector<double> parts_of_four(int threads, double part) {
    const std::array<std::size_t, 4> replicas{0, 1, 2, 3};
    const auto source = std::make_shared<Parts>();
    std::array<std::atomic<int>, 4> done{};
    const auto work = [&](std::size_t replica, const Executor&, const Time&) { ++done.at(replica); };
    for_replicas(replicas, work, on_threads(threads), Time(source), part);
    for (const auto& one : done) CHECK(one == 1);
    std::sort(source->parts.begin(), source->parts.end());
    return source->parts;
}

void check_parts(const std::vector<double>& parts, const std::vector<double>& wanted) {
    REQUIRE(parts.size() == wanted.size());
    for (std::size_t i = 0; i < parts.size(); ++i) CHECK(parts[i] == doctest::Approx(wanted[i]));
}

}  // namespace

TEST_CASE("replicas have equal parts of the budget, those that go side by side the same one") {
    check_parts(parts_of_four(1, 1), {1.0 / 4, 1.0 / 3, 1.0 / 2, 1});
    check_parts(parts_of_four(2, 1), {1.0 / 2, 1.0 / 2, 1, 1});
    // Of half of it, the other half is never touched: an eighth of all, a seventh of what that leaves, ...
    check_parts(parts_of_four(1, 0.5), {1.0 / 8, 1.0 / 7, 1.0 / 6, 1.0 / 5});
    check_parts(parts_of_four(4, 1), {1, 1, 1, 1});
    check_parts(parts_of_four(3, 1), {1.0 / 4, 1.0 / 3, 1.0 / 2, 1});  // one would be left for last
}

TEST_CASE("what replicas took beyond their time is kept back from those that come after them") {
    struct Kept final : Time::Source {
        std::optional<schedule::StopReason> stop(const search::Progress&) override { return std::nullopt; }
        Time fraction(double, Duration reserve) override {
            reserves.push_back(reserve);
            return Time::until([] { return Duration{}; });
        }
        std::vector<Duration> reserves;
    };
    const std::array<std::size_t, 3> replicas{0, 1, 2};
    constexpr std::chrono::milliseconds taken{5};
    const auto work = [&](std::size_t, const Executor&, const Time&) { std::this_thread::sleep_for(taken); };
    const auto source = std::make_shared<Kept>();
    for_replicas(replicas, work, in_order, Time(source), 1);
    REQUIRE(source->reserves.size() == replicas.size());
    CHECK(source->reserves[0] == Duration{});
    CHECK(source->reserves[1] >= taken);
    CHECK(source->reserves[2] >= taken);

    // What takes no time is measured as taking some where the thread has to wait for a core: the least of a few.
    Duration least = taken;
    for (int attempt = 0; attempt < 100 && least >= taken; ++attempt) {
        const auto idle = std::make_shared<Kept>();
        for_replicas(
            replicas, [](std::size_t, const Executor&, const Time&) {}, in_order, Time(idle), 1);
        least = std::min(least, idle->reserves[2]);
    }
    CHECK(least < taken);
}

TEST_CASE("of several replicas that fail the first is reported") {
    const std::array<std::size_t, 4> replicas{7, 5, 3, 1};
    const auto fails = [](std::size_t replica, const Executor&, const Time&) {
        if (replica < 6) fail(ErrorKind::limit, "replica {}", replica);
    };
    for (const int threads : {1, 2})
        CHECK_THROWS_WITH(for_replicas(replicas, fails, on_threads(threads), {}, 1), "replica 5");
}

TEST_CASE("of a replica that no one replays its plan is kept, and not what that was made from") {
    const Request request = testing::small_request(2, {5, 0, 2, 9});
    Assignment assignment = assign(request.job, request.batch, in_order);
    assignment.examined = {0};
    const auto cuts = partitions_of(request.job, request.batch);
    const Wanted wanted;
    const AllReplicas all{request.job, wanted, cuts.front(), assignment};
    for (const std::size_t number : {std::size_t{0}, std::size_t{1}}) {
        Step step = build(*request.job.setup, all.partition, assignment.microbatches[number],
                          replica_wanted(*request.job.setup, all.partition, number));
        apply_policies(step, {.split = false, .policies = {{search::dual_queue_policy}}});
        REQUIRE(step.fastest() != nullptr);
        const PlannedReplica one = planned(all, number, take_policy(step, *step.fastest()));
        CHECK(one.scheduled.searched().problem.tasks.empty() == (number == 1));
        CHECK(one.plan.cut.step.problem.tasks.size() == step.tasks());
        CHECK(one.plan.found.replay.makespan == step.fastest()->makespan());
    }
}
