#include "search/construct/bankers_memory.hpp"

#include "search/construct/dispatch.hpp"
#include "search/instance/modes.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// Ties all microbatches together, or leaves memory taken, or makes a release depend on another task's acquire.
void make_odd(Problem& problem, std::uint64_t n) {
    if (n % 4 == 1)
        for (std::uint32_t i = 0; i + 1 < problem.tasks.size(); ++i)
            if (problem.tasks[i].microbatch != problem.tasks[i + 1].microbatch)
                problem.edges.push_back({TaskId{i}, TaskId{i + 1}, {}});
    if (n % 4 == 2 && problem.pairs.empty()) problem.tasks.back().release = {};
    if (n % 4 == 3 && problem.pairs.empty()) {
        // An X that frees what the first task of its rank took: no edge says who comes first.
        const Task& first = problem.tasks.front();
        problem.tasks.push_back({first.rank, TaskKind::other, Duration{2}, {}, Bytes{1}, "x", {}, {}, {}, ""});
        problem.tasks.front().acquire += Bytes{1};
    }
}

// The n-th problem, made odd in turn; it may have no tasks.
Problem odd_problem(std::uint64_t n) {
    auto problem = random_problem(shape_in_turn(n), n);
    if (!problem.tasks.empty()) make_odd(problem, n / 7);
    return problem;
}

Replay run(const Flat& flat, Dispatcher& dispatcher, std::uint64_t n, std::span<const std::uint32_t> mode) {
    Random random(n, 5);
    if (n % 5 == 4) {
        std::vector<std::int64_t> key(flat.tasks());
        for (auto& k : key) k = static_cast<std::int64_t>(random.below(1000));
        dispatcher.run_by_key(key);
    } else {
        std::vector<std::uint64_t> draw(flat.tasks());
        for (auto& d : draw) d = random.next();
        dispatcher.run(all_choices[n % 5],
                       keys_by(flat.tasks(), [&](std::uint32_t a, std::uint32_t b) { return draw[a] < draw[b]; }));
    }
    auto replay = flat.replayer->replay(as_schedule(flat, dispatcher.sequence(), mode));
    CHECK(replay.makespan.count() == dispatcher.makespan());
    return replay;
}

}  // namespace

TEST_CASE("a list schedule never overflows and never comes to a dead end, whatever its priorities") {
    const auto cases = testing::cases(4000);
    std::uint64_t built = 0, refused = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = odd_problem(n);
        if (problem.tasks.empty()) continue;
        const Replayer replayer(problem);
        const Flat flat(replayer);
        Dispatcher dispatcher(flat);
        for (const auto& mode : uniform_modes(flat)) {
            const auto shortage = dispatcher.change_costs(flat.costs(mode));
            refused += shortage ? 1 : 0;
            if (shortage) {
                CHECK(shortage->bytes > 0);
                continue;
            }
            ++built;
            CHECK(run(flat, dispatcher, n, mode).outcome == Outcome::completed);
        }
    }
    CHECK(built > cases.share(2000));
    CHECK(refused > cases.share(100));  // the capacities do bite
}

TEST_CASE("whatever a bar rules out, memory refuses when asked") {
    const auto cases = testing::cases(1500);
    std::uint64_t ruled_out = 0, left = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = odd_problem(n);
        if (problem.tasks.empty()) continue;
        const Replayer replayer(problem);
        const Flat flat(replayer);
        const auto costs = flat.costs(uniform_modes(flat).front());
        BankersMemory memory(flat), asked(flat);
        if (memory.prepare(costs)) continue;
        static_cast<void>(asked.prepare(costs));
        std::vector<std::uint32_t> missing(flat.tasks());
        std::vector<char> placed(flat.tasks(), 0);
        for (std::uint32_t i = 0; i < flat.tasks(); ++i) missing[i] = static_cast<std::uint32_t>(flat.before[i].size());
        Random random(n, 21);
        std::uint32_t done = 0;
        for (int step = 0; done < flat.tasks() && step < 5000; ++step) {
            std::vector<std::uint32_t> ready;
            for (std::uint32_t i = 0; i < flat.tasks(); ++i)
                if (placed[i] == 0 && missing[i] == 0) ready.push_back(i);
            const std::uint32_t task = ready[random.below(ready.size())];
            if (memory.allows(task)) {
                REQUIRE(asked.allows(task));
                memory.place(task);
                asked.place(task);
                placed[task] = 1;
                ++done;
                for (const Arc& arc : flat.after[task]) --missing[arc.task];
            }
            for (const std::uint32_t i : ready) {
                if (placed[i] != 0) continue;
                const Want want = memory.want(i);
                const Bar bar = memory.bar(flat.rank_of[i]);
                const bool out =
                    want.acquire > memory.room_left(flat.rank_of[i]) || (want.net >= bar.net && want.key >= bar.key);
                if (out) REQUIRE_FALSE(asked.allows(i));
                ruled_out += out && want.acquire <= memory.room_left(flat.rank_of[i]) ? 1 : 0;
                left += out ? 0 : 1;
            }
        }
        CHECK(done == flat.tasks());
    }
    CHECK(ruled_out > cases.share(300));
    CHECK(left > cases.share(1000));
}

TEST_CASE("fitting now is not enough: a second microbatch that would starve the first is refused") {
    // Two ranks with room for 3; a microbatch needs 2 on each. F of both on rank 0 would leave 1 for neither's second
    // F.
    Problem problem;
    problem.name = "starve";
    problem.ranks = {{Bytes{3}, {}, {}}, {Bytes{3}, {}, {}}};
    const auto add = [&](std::uint32_t rank, TaskKind kind, std::int64_t take, std::int64_t give, std::int64_t m) {
        problem.tasks.push_back({RankId{rank}, kind, Duration{1}, Bytes{take}, Bytes{give}, "t", {}, m, {}, ""});
    };
    for (std::uint32_t m = 0; m < 2; ++m) {
        // Two forwards on rank 0 of one and two bytes, then the backward that frees them.
        add(0, TaskKind::forward, 1, 0, m);
        add(1, TaskKind::forward, 1, 0, m);
        add(0, TaskKind::forward, 2, 0, m);
        add(0, TaskKind::backward, 0, 3, m);
        add(1, TaskKind::backward, 0, 1, m);
        for (std::uint32_t k = 0; k < 4; ++k) problem.edges.push_back({TaskId{5 * m + k}, TaskId{5 * m + k + 1}, {}});
    }
    const Replayer replayer(problem);
    const Flat flat(replayer);
    BankersMemory memory(flat);
    REQUIRE_FALSE(memory.prepare(flat.costs({})));

    REQUIRE(memory.allows(0));
    memory.place(0);

    CHECK_FALSE(memory.allows(5));  // 1 + 1 bytes fit into 3, but then no second forward ever would
    CHECK(memory.allows(1));
}

TEST_CASE("what cannot fit names the rank and the bytes") {
    Problem problem;
    problem.name = "short";
    problem.ranks = {{Bytes{10}, Bytes{4}, {}}};
    problem.tasks = {{RankId{0}, TaskKind::forward, Duration{1}, Bytes{4}, {}, "a", {}, 0, {}, ""},
                     {RankId{0}, TaskKind::forward, Duration{1}, Bytes{5}, {}, "b", {}, 0, {}, ""},
                     {RankId{0}, TaskKind::backward, Duration{1}, {}, Bytes{9}, "c", {}, 0, {}, ""}};
    problem.edges = {{TaskId{0}, TaskId{1}, {}}, {TaskId{1}, TaskId{2}, {}}};
    const Replayer replayer(problem);
    const Flat flat(replayer);

    const auto shortage = BankersMemory(flat).prepare(flat.costs({}));

    REQUIRE(shortage);
    CHECK(shortage->text(flat) == "rank 0: 3 B (3 bytes) short to run the tasks connected with task 0 'a' even alone");
}
