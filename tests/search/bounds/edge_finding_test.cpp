#include "search/bounds/edge_finding.hpp"

#include "search/exact/exact.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

constexpr std::uint64_t plenty = 1'000'000;

Task task(std::uint32_t rank, std::int64_t duration) {
    return {RankId{rank}, TaskKind::forward, Duration{duration}, {}, {}, "t", {}, {}, {}, ""};
}

// Tasks on rank 0, each with a task on rank 1 before it and one on rank 2 after it, which make its head and tail.
struct Work {
    std::int64_t head, work, tail;
};
Problem one_machine(const std::vector<Work>& work) {
    Problem problem;
    problem.name = "one machine";
    problem.ranks.resize(1);
    for (const Work& one : work) {
        const auto first = static_cast<std::uint32_t>(problem.tasks.size());
        const auto rank = static_cast<std::uint32_t>(problem.ranks.size());
        problem.ranks.resize(rank + 2);
        problem.tasks.push_back(task(rank, one.head));
        problem.tasks.push_back(task(0, one.work));
        problem.tasks.push_back(task(rank + 1, one.tail));
        problem.edges.push_back({TaskId{first}, TaskId{first + 1}, {}});
        problem.edges.push_back({TaskId{first + 1}, TaskId{first + 2}, {}});
    }
    return problem;
}

// The smallest makespan under windows of heads and tails: those of the best schedule must allow it.
struct Optimum {
    std::int64_t makespan;
    std::vector<std::int64_t> start;
};
std::optional<Optimum> optimum(const Replayer& replayer, const Flat& flat) {
    ExactLimits limits;
    limits.widest = 1'024;
    limits.nodes = 20'000;
    Exact exact(flat, longest_makespan(flat) + 1, limits);
    std::optional<Optimum> best;
    while (exact.state() == Exact::State::working)
        if (const auto found = exact.round(in_order)) {
            const auto replay = replayer.replay(as_schedule(flat, found->sequence, found->mode));
            best = Optimum{replay.makespan.count(), {}};
            for (const Duration start : replay.start) best->start.push_back(start.count());
        }
    return exact.state() == Exact::State::proven ? best : std::nullopt;
}

Problem random(std::uint64_t n) {
    Shape shape{.ranks = 2, .microbatches = 3, .stages = 2};
    shape.capped = n % 2 == 0;
    shape.split = n % 3 == 0;
    shape.modes = n % 4 == 0;
    shape.items = n % 5 == 0;
    if (n % 7 == 0) shape = {.ranks = 3, .microbatches = 3, .stages = 3, .capped = shape.capped};
    return random_problem(shape, 31'000 + n);
}

}  // namespace

TEST_CASE("a task that cannot run before two others or between them follows both") {
    // Tails put the ends of a and b at 11 at the latest when all ends by 14. a (from 4, 3 long), b (from 5, 3 long): S
    // = {a, b} ends at 10 at the earliest. c (from 3, 2 long): 3 + 3 + 3 + 2 = 11 fits before them; 3 long it does not.
    for (const std::int64_t length : {2, 3}) {
        const auto problem = one_machine({{4, 3, 3}, {5, 3, 3}, {3, length, 1}});
        const Replayer replayer(problem);
        const Flat flat(replayer);
        Tightened windows{flat.head, flat.tail};
        std::uint64_t work = plenty;

        REQUIRE(tighten_for(flat, 14, windows, work));

        CHECK(windows.head[7] == (length == 2 ? 3 : 10));
        CHECK(work < plenty);
    }
}

TEST_CASE("a rank whose tasks do not fit into their windows refutes the limit") {
    // 4 + 3 + 3 + 3 = 13.
    const auto problem = one_machine({{4, 3, 3}, {5, 3, 3}});
    const Replayer replayer(problem);
    const Flat flat(replayer);
    for (const std::int64_t limit : {12, 13}) {
        Tightened windows{flat.head, flat.tail};
        std::uint64_t work = plenty;
        CHECK(tighten_for(flat, limit, windows, work) == (limit == 13));
    }
}

TEST_CASE("edge finding proves more than the one-machine bound") {
    // c must follow a and b or precede both; the preemptive schedule runs it around them.
    const auto problem = one_machine({{4, 2, 4}, {5, 2, 4}, {0, 5, 0}});
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const std::int64_t before = preemptive_makespan({{4, 2, 4}, {5, 2, 4}, {0, 5, 0}});
    CHECK(before == 12);
    CHECK(edge_finding_bound(flat, tightened(flat), before, plenty) == 13);
    CHECK(optimum(replayer, flat)->makespan == 13);
    // A rank of three tasks by itself takes more work than this.
    CHECK(edge_finding_bound(flat, tightened(flat), before, 17) == before);
}

TEST_CASE("windows for the optimum hold an optimal schedule, and nothing ends by less") {
    const auto cases = testing::cases(600);
    std::uint64_t solved = 0, raised = 0, above = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = random(n);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        const auto best = optimum(replayer, flat);
        if (!best) continue;
        ++solved;
        const Tightened base = tightened(flat);
        Tightened windows = base;
        std::uint64_t work = plenty;

        REQUIRE(tighten_for(flat, best->makespan, windows, work));

        for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
            CHECK(windows.head[i] <= best->start[i]);
            CHECK(best->start[i] + flat.shortest[i] + windows.tail[i] <= best->makespan);
            if (windows.head[i] > base.head[i] || windows.tail[i] > base.tail[i]) ++raised;
        }
        std::int64_t machine = 0;
        for (std::uint32_t i = 0; i < flat.tasks(); ++i)
            machine = std::max(machine, flat.head[i] + flat.shortest[i] + flat.tail[i]);
        const std::int64_t bound = edge_finding_bound(flat, base, machine, plenty);
        CHECK(bound <= best->makespan);
        if (bound > machine) ++above;
    }
    CHECK(solved > cases.share(300));
    CHECK(raised > solved);
    CHECK(above > 0);
}

TEST_CASE("without work left windows stay valid") {
    const auto problem = random(9);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const Tightened base = tightened(flat);
    Tightened windows = base;
    std::uint64_t work = 0;
    CHECK(tighten_for(flat, longest_makespan(flat), windows, work));
    CHECK(windows.head == base.head);
    CHECK(windows.tail == base.tail);
}
