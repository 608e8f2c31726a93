#include "search/improve/spend_memory.hpp"

#include "pipeweaver/search/policies.hpp"
#include "tests/search/by_hand.hpp"
#include "tests/search/random_problem.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Candidate loaded(const Flat& flat, IncrementalSchedule& current, const Schedule& schedule) {
    Candidate candidate;
    current.load(*sequence_of(flat, schedule), schedule.mode);
    store(current, candidate);
    return candidate;
}

// One rank that runs F0 F1 B0 B1 F2 B2; whole a pass holds 4 bytes and its backward takes 2, recomputed 1 byte and 3.
Problem three_passes(std::int64_t capacity) {
    auto problem = chains(1, 3);
    problem.ranks[0].capacity = Bytes{capacity};
    Mode whole, again;
    whole.held = Bytes{4};
    whole.backward = Duration{2};
    again.held = Bytes{1};
    again.backward = Duration{3};
    problem.pairs.clear();
    for (std::uint32_t m = 0; m < 3; ++m) {
        Pair pair{TaskId{2 * m}, TaskId{2 * m + 1}, {}, {whole, again}};
        const auto costs = costs_in(pair, whole);
        apply(problem.tasks[2 * m], costs[0]);
        apply(problem.tasks[2 * m + 1], costs[1]);
        problem.pairs.push_back(pair);
    }
    return problem;
}

}  // namespace

TEST_CASE("memory that an order leaves is spent on the passes that take it for the shortest time first") {
    const auto modes_with = [](std::int64_t capacity) {
        const auto problem = three_passes(capacity);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        IncrementalSchedule current(flat);
        auto candidate =
            loaded(flat, current, {{{TaskId{0}, TaskId{2}, TaskId{1}, TaskId{3}, TaskId{4}, TaskId{5}}}, {1, 1, 1}});
        spend_memory(flat, current, candidate);
        return candidate.mode;
    };
    using Modes = std::vector<std::uint32_t>;
    CHECK(modes_with(2) == Modes{1, 1, 1});
    CHECK(modes_with(4) == Modes{1, 1, 0});  // the last pass is alone
    CHECK(modes_with(5) == Modes{0, 1, 0});  // and one of the two that are in flight together
    CHECK(modes_with(8) == Modes{0, 0, 0});
}

TEST_CASE("spent memory fits, keeps every rank's order, and costs no time") {
    std::size_t gained = 0, tried = 0;
    for (std::uint64_t number = 0; number < 400; ++number) {
        const auto problem = random_problem(three_ranks_in_turn(number), number);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        for (const Policy& policy : policies()) {
            const auto result = apply_policy(policy.name, replayer);
            if (!result.schedule) continue;
            IncrementalSchedule current(flat);
            const Candidate before = loaded(flat, current, *result.schedule);
            Candidate after = before;
            spend_memory(flat, current, after);
            const Schedule spent = as_schedule(flat, after.sequence, after.mode);
            CHECK(spent.order == result.schedule->order);
            const Replay replay = replayer.replay(spent);
            REQUIRE(replay.outcome == Outcome::completed);
            CHECK(replay.makespan.count() == after.energy.makespan);
            CHECK(after.energy.makespan <= before.energy.makespan);
            if (problem.pairs.empty()) CHECK(after.sequence == before.sequence);
            gained += after.energy.makespan < before.energy.makespan ? 1 : 0;
            ++tried;
        }
    }
    CHECK(tried > 1000);
    CHECK(gained > 20);
}
