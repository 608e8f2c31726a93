// Steps that vary: what is drawn, and what the lists lose.
#include "pipeweaver/planner/jitter.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/jitter_options.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/schedule/stage_table.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/policy_names.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using namespace std::chrono_literals;

namespace {

// Two stages of 10 us forward and 20 us backward, four microbatches: 1F1B takes 10 + 4 * 30 + 20 us.
struct TwoRanks {
    schedule::Problem problem = schedule::stage_problem(
        schedule::parse_stage_table("t.csv",
                                    "stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,"
                                    "send_bytes\n0,0,10,20,,1,1,1\n1,1,10,20,,1,1,1\n"),
        {4, {}, {}});
    schedule::Schedule schedule =
        *search::apply_policy(search::one_f_one_b_policy, schedule::Replayer(problem)).schedule;

    ReplicaLists lists() const { return {&problem, &schedule}; }
};

JitterReport drawn(const std::vector<ReplicaLists>& replicas, const JitterRequest& asked,
                   const Executor& execute = in_order) {
    return jitter(replicas, asked, execute);
}

JitterRequest steady() {
    JitterRequest asked;
    asked.task = asked.rank = 0;
    asked.steps = 20;
    return asked;
}

}  // namespace

TEST_CASE("where nothing varies every step is the plan's") {
    const TwoRanks two;
    const JitterReport report = drawn({two.lists()}, steady());
    CHECK(report.lists == DrawnMakespans{150us, 150us, 150us, 150us});
    CHECK_FALSE(report.one_f_one_b);
    CHECK(report.why_no_1f1b == "the lists are its own");
    CHECK(report.local_saves == 0);
    CHECK(report.stale_saves == doctest::Approx(0.2));  // a rank works 120 of 150 us
}

TEST_CASE("a rank that is slow costs what a replay says") {
    const TwoRanks two;
    const JitterReport report = drawn({two.lists()}, steady());
    REQUIRE(report.slowed.size() == 2);
    // Rank 1 never waits between its first forward and its last backward: 10 + 4 * 33 + 20.
    CHECK(report.slowed[1] == std::array{Duration{162us}, Duration{174us}, Duration{186us}});
    // Rank 0 with 11 and 22: F3 ends at 107, B2 on rank 0 at 129, B3 on rank 1 at 137, on rank 0 at 159.
    CHECK(report.slowed[0][0] == 159us);
}

TEST_CASE("a slow rank is slow in every step, by what is drawn between its ends") {
    const TwoRanks two;
    JitterRequest asked = steady();
    asked.slow = {1, 0.2, 0.2};
    CHECK(drawn({two.lists()}, asked).lists == DrawnMakespans{150us, 174us, 174us, 174us});

    // Even between 10 and 30 %: the median at 20 %, nine of ten below 28 %: 10 + 4 * 38.4 + 20.
    asked.slow = {1, 0.1, 0.3};
    asked.steps = 2000;
    const JitterReport report = drawn({two.lists()}, asked);
    CHECK(static_cast<double>(report.lists.p50.count()) == doctest::Approx(174'000).epsilon(0.01));
    CHECK(static_cast<double>(report.lists.p90.count()) == doctest::Approx(183'600).epsilon(0.01));

    // Either rank: the median lies between those of both alone.
    asked.slow = {std::nullopt, 0.3, 0.3};
    const JitterReport either = drawn({two.lists()}, asked);
    CHECK(either.lists.p90 == either.slowed[1][2]);
    CHECK(either.lists.p50 >= either.slowed[0][2]);

    asked.slow = {2, 0.1, 0.1};
    CHECK_THROWS_WITH_AS(static_cast<void>(drawn({two.lists()}, asked)),
                         "--slow: there is no rank 2, allowed are 0 to 1", Error);
}

TEST_CASE("draws depend on the seed alone, not on who replays them") {
    const TwoRanks two;
    JitterRequest asked;
    asked.steps = 200;
    const Executor backwards = [](std::size_t count, const std::function<void(std::size_t)>& job) {
        for (std::size_t i = count; i > 0; --i) job(i - 1);
    };
    const std::vector<ReplicaLists> both{two.lists(), two.lists()};
    const JitterReport one = drawn(both, asked), other = drawn(both, asked, backwards),
                       four = drawn(both, asked, on_threads(4));
    for (const JitterReport* same : {&other, &four}) {
        CHECK(same->lists == one.lists);
        CHECK(same->ready_queue == one.ready_queue);
        CHECK(same->local_saves == one.local_saves);
        CHECK(same->stale_saves == one.stale_saves);
    }
    asked.seed = 2;
    CHECK_FALSE(drawn(both, asked).lists == one.lists);
    CHECK(one.lists.p50 < one.lists.p99);
    CHECK(one.local_saves > 0);  // two replicas wait for the slower one of each step
    CHECK(one.local_saves < one.stale_saves);
}

TEST_CASE("tasks of a rank that vary make a step of two ranks longer than the plan's on average") {
    // Every wait is for the later of two, so what is late is passed on and what is early is not.
    const TwoRanks two;
    JitterRequest asked;
    asked.task = 0.2;
    asked.rank = 0;
    CHECK(drawn({two.lists()}, asked).lists.p50 > 150us);
}

TEST_CASE("other lists than its own are held against 1F1B") {
    TwoRanks two;
    // One microbatch after the other: 4 * 60 us; its queue may run the next forwards while it waits.
    for (auto& order : two.schedule.order)
        std::sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
            const auto place = [&](TaskId id) {
                const schedule::Task& task = two.problem.tasks[index(id)];
                return std::pair(*task.microbatch, task.kind == schedule::TaskKind::backward);
            };
            return place(a) < place(b);
        });
    const JitterReport report = drawn({two.lists()}, steady());
    CHECK(report.lists.steady == 240us);
    REQUIRE(report.one_f_one_b);
    CHECK(report.one_f_one_b->steady == 150us);
    CHECK(report.one_f_one_b->p50 == 150us);
    CHECK(report.ready_queue.p50 < 240us);
    CHECK(report.ready_queue.steady == report.ready_queue.p50);
}

TEST_CASE("options say how steps vary, and what is not one") {
    OptionTable table;
    JitterOptions options;
    options.add_to(table);
    const auto set = [&](std::string_view name, const std::string& text) {
        for (const auto& entry : table.entries())
            if (entry.name == name) entry.set(text);
    };
    CHECK_FALSE(options.request(1));
    set("robust", "jitter");
    CHECK_FALSE(options.request(1)->slow);
    set("jitter", "5%");
    set("slow", "3:10-30%");
    const auto asked = options.request(7);
    REQUIRE(asked);
    CHECK(asked->task == doctest::Approx(0.05));
    CHECK(asked->slow->rank == 3);
    CHECK(asked->slow->least == doctest::Approx(0.1));
    CHECK(asked->slow->most == doctest::Approx(0.3));
    CHECK(asked->seed == 7);
    set("slow", "20%");
    CHECK_FALSE(options.request(1)->slow->rank);
    CHECK(options.request(1)->slow->least == options.request(1)->slow->most);
    for (const char* wrong : {"5", "26%", "-1%", "", "%"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(set("jitter", wrong), Error);
    }
    for (const char* wrong : {"10", "30-10%", "x:10%", ":10%", "1:%", "10-%", "-10%", "1001%"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(set("slow", wrong), Error);
    }
    options.robust.clear();
    CHECK_THROWS_WITH_AS(static_cast<void>(options.request(1)), "--jitter: goes with --robust jitter", Error);
}
