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
