#include "search/dip/dip_memory.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// One rank that runs F0 F1 B0 B1; each pair is fast and holds 2, or slow and holds 1.
Problem two_pairs(std::int64_t capacity) {
    auto problem = chains(1, 2);
    problem.ranks[0].capacity = Bytes{capacity};
    Mode fast, slow;
    fast.forward = slow.forward = Duration{2};
    fast.backward = Duration{2};
    slow.backward = Duration{3};
    fast.held = Bytes{2};
    slow.held = Bytes{1};
    problem.pairs = {{TaskId{0}, TaskId{1}, {}, {fast, slow}}, {TaskId{2}, TaskId{3}, {}, {fast, slow}}};
    return problem;
}

std::size_t fast_pairs(std::int64_t capacity) {
    const auto problem = two_pairs(capacity);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    DipMemory memory(flat);
    const auto mode = memory.choose(std::vector<std::uint32_t>{0, 2, 1, 3}, std::vector<std::uint32_t>{1, 1});
    return static_cast<std::size_t>(std::count(mode.begin(), mode.end(), 0U));
}

}  // namespace

TEST_CASE("as many pairs take the faster mode as the rank has room for") {
    CHECK(fast_pairs(2) == 0);
    CHECK(fast_pairs(3) == 1);
    CHECK(fast_pairs(4) == 2);
}

TEST_CASE("where memory is without limit every pair takes its fastest mode, however much that holds") {
    auto problem = two_pairs(0);
    problem.ranks[0].capacity.reset();
    for (Pair& pair : problem.pairs) {
        Mode fastest = pair.modes.front();
        fastest.forward = Duration{1};
        fastest.held = Bytes{1000};
        pair.modes.push_back(fastest);
    }
    const Replayer replayer(problem);
    const Flat flat(replayer);
    DipMemory memory(flat);
    const std::vector<std::uint32_t> order{0, 2, 1, 3}, base{1, 1};
    CHECK(memory.choose(order, base) == std::vector<std::uint32_t>{2, 2});
}

TEST_CASE("what saves most for its memory is preferred to what saves most") {
    auto problem = chains(1, 3);
    problem.ranks[0].capacity = Bytes{13};
    const auto pair_of = [](std::uint32_t forward, std::int64_t saved, std::int64_t bytes) {
        Mode slow, fast;
        slow.forward = fast.forward = Duration{20};
        slow.backward = Duration{20};
        fast.backward = Duration{20 - saved};
        slow.held = Bytes{1};
        fast.held = Bytes{1 + bytes};
        return Pair{TaskId{forward}, TaskId{forward + 1}, {}, {slow, fast}};
    };
    problem.pairs = {pair_of(0, 10, 10), pair_of(2, 6, 5), pair_of(4, 6, 5)};
    const Replayer replayer(problem);
    const Flat flat(replayer);
    DipMemory memory(flat);
    const std::vector<std::uint32_t> order{0, 2, 4, 1, 3, 5}, base{0, 0, 0};
    CHECK(memory.choose(order, base) == std::vector<std::uint32_t>{0, 1, 1});
}
