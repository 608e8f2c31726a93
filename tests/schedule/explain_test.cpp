#include "pipeweaver/schedule/explain.hpp"

#include "pipeweaver/schedule/fixed_order.hpp"
#include "tests/support/random_problem.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace std::chrono_literals;

namespace {

constexpr TaskId a{0}, b{1}, c{2};
constexpr RankId rank0{0}, rank1{1};

// rank 0 |A 0-10          . waits .          C 48-68|tail 4|
// rank 1 | . waits . (5 us) B 15-45 (3 us)
Problem three_tasks() {
    Problem problem;
    problem.ranks = {{{}, {}, 4us}, {{}, {}, {}}};
    problem.tasks = {{rank0, TaskKind::forward, 10us, {}, {}, "A", {}, {}, {}, "m"},
                     {rank1, TaskKind::forward, 30us, {}, {}, "B", {}, {}, {}, "m"},
                     {rank0, TaskKind::backward, 20us, {}, {}, "C", {}, {}, {}, "m"}};
    problem.edges = {{a, b, 5us}, {b, c, 3us}};
    return problem;
}

const Schedule in_turn{{{a, c}, {b}}, {}};

Explanation of_three(const Query& asked) {
    const Problem problem = three_tasks();
    return explain(Replayer(problem), in_turn, asked);
}

// What is said of a change, in the order in which it is said.
struct Said {
    Changed changed;
    TaskId task;
    Duration shorter, earlier;

    friend bool operator==(const Said&, const Said&) = default;
};

std::vector<Said> said(const Explanation& all) {
    std::vector<Said> list;
    for (const Shortening& one : all.shortening) list.push_back({one.changed, one.task, one.shorter, one.earlier});
    return list;
}

struct Drawn {
    ProblemFile file;
    Schedule schedule;
};

Drawn drawn(std::uint64_t seed) {
    const auto instance = testing::random_instance(seed);
    auto file = parse_problem("problem", instance.problem);
    auto schedule = parse_schedule("solution", instance.solution, file);
    return {std::move(file), std::move(schedule)};
}

}  // namespace

TEST_CASE("what decides a makespan is a chain of tasks and transfers, and each of them would shorten it") {
    const auto all = of_three({});

    CHECK(all.times.makespan == 72us);
    CHECK_FALSE(all.about);
    CHECK(all.tail == 4us);
    REQUIRE(all.chain.size() == 3);
    CHECK(all.chain[0].task == c);
    CHECK(all.chain[0].cause == Cause{b, 3us, false});
    CHECK(all.chain[1].cause == Cause{a, 5us, false});
    CHECK_FALSE(all.chain[2].cause);
    // A tenth of A and B together, of C; of B, C, A; then the transfers.
    CHECK(said(all) == std::vector<Said>{{Changed::pass, b, 4us, 0us},
                                         {Changed::pass, c, 2us, 0us},
                                         {Changed::task, b, 3us, 0us},
                                         {Changed::task, c, 2us, 0us},
                                         {Changed::task, a, 1us, 0us},
                                         {Changed::transfer, b, 5us, 0us},
                                         {Changed::transfer, c, 3us, 0us}});
}

TEST_CASE("a rank waits, runs, does what follows its tasks, and is done") {
    const auto waiting = of_three({.at = Instant{rank0, 20us}});
    CHECK(waiting.state->doing == Activity::waits);
    CHECK(waiting.state->from == 10us);
    CHECK(waiting.state->to == 48us);
    CHECK(waiting.about == c);
    CHECK(said(waiting).front() == Said{Changed::pass, b, 4us, 4us});  // C begins 1 us + 3 us earlier

    CHECK(of_three({.at = Instant{rank0, 5us}}).state->doing == Activity::runs);
    CHECK(of_three({.at = Instant{rank0, 68us}}).state->doing == Activity::ends);
    const auto done = of_three({.at = Instant{rank1, 45us}});
    CHECK(done.state->doing == Activity::is_done);
    CHECK(done.state->to == 72us);
    CHECK_FALSE(done.about);
    CHECK(of_three({.at = Instant{rank0, 100us}}).state->doing == Activity::is_done);
}

TEST_CASE("of a task that is asked about its own time is told first") {
    const auto all = of_three({.task = b});

    CHECK(all.about == b);
    CHECK(all.chain.size() == 2);
    CHECK(said(all).front() == Said{Changed::task, b, 3us, 0us});
    CHECK(said(all).back() == Said{Changed::transfer, b, 5us, 5us});
}

TEST_CASE("waits are told by rank, the longest first") {
    const auto all = of_three({});

    REQUIRE(all.waits.size() == 2);
    CHECK(all.waits[0].total == 38us);
    CHECK(all.waits[0].done == 0us);
    REQUIRE(all.waits[0].longest.size() == 1);
    CHECK(all.waits[0].longest[0].task == c);
    CHECK(all.waits[0].longest[0].cause == Cause{b, 3us, false});
    CHECK(all.waits[1].total == 15us);
    CHECK(all.waits[1].done == 27us);  // 72 - 45
}

TEST_CASE("a task that is longer by its slack changes nothing, by one nanosecond more it does") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const auto [file, schedule] = drawn(seed);
        const Replayer replayer(file.problem);
        const auto times = timeline_of(replayer, schedule);
        const FixedOrder order(replayer, schedule);
        std::vector<std::int64_t> longer(order.durations().begin(), order.durations().end()), ends;
        for (std::size_t task = 0; task < longer.size(); ++task) {
            CAPTURE(seed);
            CAPTURE(task);
            const std::int64_t own = longer[task];
            longer[task] = own + times.slack_ns[task];
            CHECK(order.makespan(longer, ends) == times.makespan);
            ++longer[task];
            CHECK(order.makespan(longer, ends) == times.makespan + 1ns);
            longer[task] = own;
        }
    }
}

TEST_CASE("a chain fills the time to its end, and waits fill what ranks do not work") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        const auto [file, schedule] = drawn(seed);
        const Replayer replayer(file.problem);
        const auto all = explain(replayer, schedule, {});
        std::int64_t sum = all.tail.count();
        for (const ChainLink& link : all.chain) {
            sum += all.times.end_ns[index(link.task)] - all.times.start_ns[index(link.task)];
            sum += link.cause ? link.cause->lag.count() : 0;
            CHECK(all.times.slack_ns[index(link.task)] == 0);
        }
        CHECK(Duration{sum} == all.times.makespan);
        for (std::size_t r = 0; r < all.waits.size(); ++r) {
            if (schedule.order[r].empty()) continue;
            Duration filled = all.waits[r].total + all.waits[r].done + file.problem.ranks[r].tail;
            for (const TaskId task : schedule.order[r])
                filled += Duration{all.times.end_ns[index(task)] - all.times.start_ns[index(task)]};
            CHECK(filled == all.times.makespan);
        }
        for (const Shortening& one : all.shortening) CHECK(one.makespan + one.shorter == all.times.makespan);
    }
}
