#include "search/instance/modes.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Mode mode(std::int64_t forward, std::int64_t backward, std::int64_t held, std::int64_t transient) {
    Mode made;
    made.forward = Duration{forward};
    made.backward = Duration{backward};
    made.held = Bytes{held};
    made.transient = Bytes{transient};
    return made;
}

// The first pair has three modes, the second two.
Problem with_modes() {
    auto problem = chains(1, 2);
    problem.pairs = {{TaskId{0}, TaskId{1}, {}, {mode(2, 9, 8, 0), mode(1, 2, 4, 1), mode(1, 5, 1, 8)}},
                     {TaskId{2}, TaskId{3}, {}, {mode(2, 2, 8, 0), mode(2, 2, 2, 1)}}};
    return problem;
}

using Choices = std::vector<std::vector<std::uint32_t>>;

}  // namespace

TEST_CASE("uniform modes come by their total time, and a pair with fewer takes its last") {
    const auto problem = with_modes();
    const Replayer replayer(problem);
    CHECK(uniform_modes(Flat(replayer)) == Choices{{1, 1}, {2, 1}, {0, 0}});  // 7, 10, 15
}

TEST_CASE("frugal modes hold least between the passes, or have the smallest peak of their own") {
    const auto problem = with_modes();
    const Replayer replayer(problem);
    CHECK(frugal_modes(Flat(replayer)) == Choices{{2, 1}, {1, 1}});  // held 1 and 2; peaks 5 and 3
}

TEST_CASE("a problem without pairs has one choice, the empty one") {
    const auto problem = chains(2, 2);
    const Replayer replayer(problem);
    CHECK(uniform_modes(Flat(replayer)) == Choices{{}});
}
