#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/verified.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Found solve_rounds(const Problem& problem, std::uint64_t rounds) {
    Options options;
    options.max_rounds = rounds;
    return solve(Replayer(problem), options, in_order);
}

}  // namespace

TEST_CASE("no rank's memory is exceeded on ten thousand random problems with capacities") {
    const std::uint64_t count = testing::cases(10'000, 500).count;
    std::uint64_t found_some = 0;
    for (std::uint64_t n = 0; n < count; ++n) {
        CAPTURE(n);
        const auto problem = random_problem({.ranks = 1 + static_cast<std::uint32_t>(n % 4),
                                             .microbatches = 1 + static_cast<std::uint32_t>(n % 3),
                                             .stages = 1 + static_cast<std::uint32_t>(n % 5),
                                             .split = n % 2 == 0,
                                             .modes = n % 7 < 3,
                                             .items = n % 5 == 0},
                                            200'000 + n);
        if (problem.tasks.empty()) continue;
        const auto found = solve_rounds(problem, n % 50 == 0 ? 3 : 0);
        if (!found.schedule) {
            CHECK(found.why_not.find("rank") != std::string::npos);
            continue;
        }
        ++found_some;
        testing::check_verified(problem, found);
    }
    CHECK(found_some * 3 > count);
}
