// Which microbatches of a step are priced.
#include "groups/sorted_microbatches.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::groups;

TEST_CASE("of many microbatches those with most items and with most tokens are priced") {
    for (const std::int64_t longest : {0, 1, 37, 98, 99}) {
        CAPTURE(longest);
        std::vector<workloads::Microbatch> all(100);
        for (std::int64_t m = 0; m < 100; ++m) {
            auto& one = all[static_cast<std::size_t>(m)];
            one.tokens = m == longest ? 2000 : 1000 + m;
            one.lengths = {one.tokens};
            one.items.push_back({.size = {.patches = 10 * m}});
        }
        const SortedMicrobatches sorted = sorted_microbatches(all, 8);
        CHECK(sorted.priced.size() == 8);
        CHECK(sorted.priced.back().items.front().size.patches == 990);
        CHECK(std::any_of(sorted.priced.begin(), sorted.priced.end(),
                          [](const auto& one) { return one.tokens == 2000; }));
        CHECK(sorted.as.size() == 100);
        CHECK(std::is_sorted(sorted.as.begin(), sorted.as.end()));
        CHECK(sorted.as.front() == 0);
        CHECK(sorted.as.back() == 7);
    }
}
