#include "pipeweaver/planner/time.hpp"

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/search_limits.hpp"
#include "pipeweaver/planner/session.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/times.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using schedule::StopReason;

namespace {

// A clock that stands still until it is told to go.
struct StillClock {
    Duration left{1000};
    Time time = Time::until([this] { return left; });
};

int questions(const Time& time) {
    int asked = 0;
    while (!time.is_over() && asked < 100) ++asked;
    return asked;
}

// For sizes from a small plan to thousands of GPUs, as docs/thousands-of-gpus.md has it.
std::string effort_table() {
    constexpr std::array<std::pair<std::size_t, std::size_t>, 9> rows{{{1'000, 1},
                                                                       {1'000, 16},
                                                                       {1'000, 128},
                                                                       {5'000, 8},
                                                                       {10'000, 1},
                                                                       {10'000, 128},
                                                                       {40'000, 1},
                                                                       {40'000, 128},
                                                                       {60'000, 1}}};
    std::string table =
        "| tasks of a replica | replicas | one policy whatever the time | full bounds | order warms later batches | "
        "replicas trade | examined | under perturbed costs | near schedules compared | partitions searched |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n";
    const auto yes = [](bool is) { return is ? "yes" : "no"; };
    for (const auto& [tasks, replicas] : rows) {
        const Effort one = effort_of(tasks, replicas);
        table += fmt::format("| {} | {} |", tasks, replicas);
        if (one.can_plan)
            table += fmt::format(" {} | {} | {} | {} | {} | {}{} | {} | {} |\n", yes(one.policy_first),
                                 one.full_bounds_first ? "first" : "last", yes(one.keeps_order), yes(one.exchanges),
                                 one.examined, one.perturbed, one.perturbs_anyhow ? "" : ", if time is left",
                                 one.alternatives, one.finalists);
        else
            table += " refused | | | | | | | |\n";
    }
    return table;
}

Request launched(std::size_t microbatches = 8) {
    Request request = testing::small_request(1, std::vector<int>(microbatches, 2));
    request.job.target = "megatron";
    return request;
}

Plan planned_with(const Opponents& known, const Request& request, Duration left) {
    Wanted wanted;
    wanted.robustness = wanted.targets = false;
    wanted.known_opponents = &known;
    return make_plan(request.job, request.batch, in_order, Time::until([left] { return left; }), wanted);
}

std::size_t untried(const Plan& plan) {
    const auto& refused = plan.baselines.not_applicable;
    return static_cast<std::size_t>(std::count_if(refused.begin(), refused.end(),
                                                  [](const NotApplicable& one) { return one.why == no_time_left; }));
}

}  // namespace

TEST_CASE("a fraction is a part of what is left when it begins, and ends no later than the whole") {
    StillClock clock;
    const Time half = clock.time.fraction(0.5);
    const Time quarter = half.fraction(0.5);
    const Time rest = half.fraction(1, Duration{100});  // for what comes after it
    CHECK(!quarter.is_over());
    clock.left = Duration{751};
    CHECK(!quarter.is_over());
    clock.left = Duration{750};
    CHECK(quarter.stop() == StopReason::budget);
    CHECK(!rest.is_over());
    clock.left = Duration{600};
    CHECK(rest.is_over());
    CHECK(!half.is_over());
    const Time all = half.fraction(1), late = all.fraction(0.1);
    clock.left = Duration{589};  // the end came nearer than a clock brings it
    CHECK(late.is_over());
    CHECK(!all.is_over());
    clock.left = Duration{500};
    CHECK(all.is_over());
    CHECK(half.is_over());
    CHECK(!clock.time.is_over());
    clock.left = Duration{0};
    CHECK(clock.time.is_over());
    CHECK(clock.time.fraction(1).is_over());
}

TEST_CASE("time without an end is never over, and what its caller says ends all parts of it") {
    CHECK(!Time().is_over());
    CHECK(!Time().fraction(0.1).keep_going());
    bool stop = false;
    const Time asked = Time::until(
        {}, [&](const search::Progress&) { return stop ? std::optional(StopReason::stopped) : std::nullopt; });
    const auto keep_going = asked.fraction(0.1).keep_going();
    REQUIRE(keep_going);
    CHECK(!keep_going({}));
    stop = true;
    CHECK(keep_going({}) == StopReason::stopped);
}

TEST_CASE("many threads may ask at once, the caller is asked by one at a time") {
    std::atomic<int> asking = 0, wrong = 0;
    const Time whole = Time::until(
        [&] {
            if (++asking != 1) ++wrong;
            --asking;
            return Duration{1};
        },
        [&](const search::Progress&) {
            if (++asking != 1) ++wrong;
            --asking;
            return std::optional<StopReason>();
        });
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) static_cast<void>(whole.fraction(0.5).is_over());
        });
    for (auto& one : threads) one.join();
    CHECK(wrong == 0);
}

TEST_CASE("a clock of this machine runs") {
    CHECK(!time_left(std::nullopt));
    CHECK(time_left(Duration{0})() == Duration{0});
    CHECK(time_left(std::chrono::hours(1))() > std::chrono::minutes(59));
}

TEST_CASE("what a search was told comes again from its record, part by part") {
    Stops stops;
    const Time time = counted(testing::after_questions(3), stops);
    const Time policies = time.fraction(0.25), search = time.fraction(1);
    const Time early = search.fraction(0.5), half = search.fraction(0.5);
    CHECK(!policies.is_over());
    CHECK(questions(search) == 3);
    CHECK(questions(early) == 3);
    CHECK(stops == Stops{std::nullopt, 3, 3, std::nullopt});

    const Ending ending(stops);
    const Time then = again(ending);
    CHECK(questions(then.fraction(0.1)) == 100);
    const Time second = then.fraction(0.1);
    CHECK(questions(second) == 3);
    CHECK(questions(second.fraction(0.1)) == 3);
    CHECK(questions(second.fraction(0.1)) == 100);
    CHECK_THROWS_WITH(static_cast<void>(then.fraction(1)),
                      "endings: has 4 entries for a replica, its search asks for more");
    const Ending none;
    CHECK(again(none).fraction(1).is_over());
}

TEST_CASE("a larger plan does less, and the page on thousands of GPUs says what") {
    const Effort small = effort_of(1'000, 1), large = effort_of(40'000, 128);
    CHECK((small.policy_first && small.full_bounds_first && small.keeps_order && small.perturbs_anyhow));
    CHECK(small.alternatives == usual_rule.most - 1);
    CHECK(small.finalists == quick_choice.finalists);
    CHECK((!large.policy_first && !large.full_bounds_first && !large.exchanges && !large.perturbs_anyhow));
    CHECK((large.examined == 8 && large.perturbed == 2 && large.alternatives == 0 && large.finalists == 0));
    CHECK(!effort_of(50'001, 1).can_plan);
    CHECK(effort_of(40'000, 128, robust_rule).alternatives == 1);
    std::ifstream page(testing::source_folder() / "docs/thousands-of-gpus.md");
    std::stringstream text;
    text << page.rdbuf();
    CHECK_MESSAGE(text.str().find(effort_table()) != std::string::npos, effort_table());
}

TEST_CASE("a search that was given neither rounds nor a time ends by its own count of work") {
    SearchLimits limits;
    CHECK((!limits.budget && !limits.rounds()));
    const Request request = testing::small_request(2, {1, 2, 3, 4, 5, 6});
    const Plan plan = make_plan(request.job, request.batch, in_order, {}, {.targets = false, .opponents = false});
    for (const ReplicaPlan& replica : plan.replicas) {
        CHECK(replica.found.stop_reason != schedule::StopReason::budget);
        CHECK(replica.found.stop_reason != schedule::StopReason::stopped);
    }
}

TEST_CASE("known schedules have what is left when what follows is taken from it, as long as that takes here") {
    const Request request = launched();
    const Time hour = Time::until([] { return Duration(std::chrono::hours(1)); });
    const auto left = [&](double runs) {
        return time_for_opponents(request.job, request.batch, in_order, hour, runs).left().value();
    };
    const Duration all{static_cast<std::int64_t>(fractions.launched * 3600e9)};
    CHECK(left(0) == all);
    // A run of so small a step takes more than a microsecond and less than a second on any machine.
    CHECK(left(1000) < all - std::chrono::milliseconds(1));
    CHECK(left(1000) > all - std::chrono::seconds(1000));
    // Where an order is searched its replicas take what they are given, but for what must be done of each.
    Request searched = request;
    searched.job.target = "free";
    const Duration half = time_for_opponents(searched.job, searched.batch, in_order, hour, 1000).left().value();
    CHECK(half < hour.left().value() / 2);
    CHECK(half > hour.left().value() / 2 - std::chrono::seconds(60));
}

TEST_CASE("what must be done of each replica is taken from what known schedules and partitions have") {
    Request request = launched();
    request.job.target = "free";
    const auto each = [&](std::size_t replicas) {
        return time_of_tasks(request.job, request.batch, replicas, in_order);
    };
    Duration one = each(1);
    CHECK(one >= Duration{1});
    for (int again = 0; again < 5; ++again) one = std::min(one, each(1));  // a core may have been waited for
    CHECK(each(100'000) > 100 * one);  // a thousandth of what it is: a run is timed twice
    // Of so many that the time is over before the smallest partition is planned the smallest is taken.
    const Time second = Time::until([] { return Duration(std::chrono::milliseconds(1)); });
    const MadePlan made = try_plan(request.job, request.batch, in_order, second, {.targets = false});
    REQUIRE(made.plan);
    CHECK(made.plan->partition_choice.cut_short);
}

TEST_CASE("what follows a search is kept of a clock's time, by the tasks of what may be the plan") {
    Request request = launched();
    request.job.target = "free";
    const Opponents all = choose_opponents(request.job, request.batch, in_order);
    const auto in_pipeline = std::find_if(all.ways.begin(), all.ways.end(), [&](const OpponentWay& one) {
        return one.setup == request.job.setup && one.has_pipeline && one.partition.chains.size() == 1;
    });
    REQUIRE(in_pipeline != all.ways.end());
    const auto after = [&](const Way* way, const Time& time) {
        return time_after_search(request.job, request.batch, way, in_order, time);
    };
    const Time hour = Time::until([] { return Duration(std::chrono::hours(1)); });
    // By how many times as many tasks as a plain cut has, of a stage on each of four ranks: one measurement in both.
    const auto ratio_of = [&](const Way& way) {
        const AfterSearch both = after(&way, hour);
        REQUIRE(both.end > Duration{});
        return static_cast<double>(both.opponent.count()) / static_cast<double>(both.end.count());
    };
    OpponentWay way = *in_pipeline;
    auto& stages = way.partition.chains.front().stages;
    stages.resize(4);
    CHECK(ratio_of(way) == doctest::Approx((12.0 + 31) / (4 + 4)));
    const auto once = stages;
    for (int more = 1; more < 10; ++more) stages.insert(stages.end(), once.begin(), once.end());
    CHECK(ratio_of(way) == doctest::Approx((120.0 + 31) / (40 + 4)));
    const AfterSearch searched = after(nullptr, hour);
    CHECK(searched.opponent == Duration{});
    CHECK(searched.end > Duration{});
    // Without a clock nothing depends on one, and what is over cannot end sooner.
    CHECK(after(&way, {}).end == Duration{});
    CHECK(after(&way, Time::until([] { return Duration{}; })).opponent == Duration{});
}

TEST_CASE("a launched plan leaves known schedules out for which there is no time") {
    const Request request = launched();
    const Opponents all = launched_here(choose_opponents(request.job, request.batch, in_order), request.job);
    REQUIRE(all.ways.size() > 2);
    CHECK(untried(planned_with(all, request, std::chrono::hours(1))) == 0);
    const Plan late = planned_with(all, request, {});
    CHECK(!late.is_searched);
    CHECK(untried(late) == all.ways.size() - 1);  // the first is tried however short the time
}

TEST_CASE("however short the time, no order is searched where none was asked for") {
    const Request request = launched(6);
    Opponents all = choose_opponents(request.job, request.batch, in_order);
    const auto other = std::find_if(all.ways.begin(), all.ways.end(), [&](const OpponentWay& way) {
        return way.setup == request.job.setup && !launches(target(request.job.target), way);
    });
    REQUIRE(other != all.ways.end());
    std::rotate(all.ways.begin(), other, other + 1);  // the fastest on the sample is none that is launched
    const Plan late = planned_with(all, request, {});
    CHECK(!late.is_searched);
    CHECK(late.baselines.all.size() == 1);  // the fastest that is launched
    // Where that one does not run on the batch, others do, for which there was no time.
    OpponentWay whole_groups = *first_launched(all, request.job);
    whole_groups.policy = "interleaved";
    all.ways.insert(all.ways.begin() + 1, whole_groups);
    const Plan untold = planned_with(all, request, {});
    CHECK(!untold.is_searched);
    CHECK(untold.baselines.all.empty());
    CHECK(untold.step == late.step);
}
