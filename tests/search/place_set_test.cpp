#include "search/instance/place_set.hpp"

#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace pipeweaver;
using namespace pipeweaver::search;

TEST_CASE("places come out in order from either end, those added on the way included") {
    for (std::uint64_t n = 0; n < 200; ++n) {
        Random random(n, 1);
        const auto size = static_cast<std::uint32_t>(1 + random.below(300));
        PlaceSet places(size);
        std::set<std::uint32_t> expected;
        const auto add = [&](std::uint64_t low, std::uint64_t high) {
            if (low >= high) return;
            const auto place = static_cast<std::uint32_t>(low + random.below(high - low));
            places.insert(place);
            expected.insert(place);
        };

        // From the front.
        add(0, size);
        std::uint32_t from = 0;
        for (auto place = places.first(0); place != PlaceSet::none; place = places.first(from)) {
            REQUIRE(place == *expected.lower_bound(from));
            from = place + 1 + static_cast<std::uint32_t>(random.below(3));  // passes some over
            for (std::uint64_t k = random.below(3); k > 0; --k) add(place + 1, size);
        }
        CHECK(expected.lower_bound(from) == expected.end());

        // From the back; nothing is left of before.
        expected.clear();
        CHECK(places.last(size) == PlaceSet::none);
        add(0, size);
        std::uint32_t end = size;
        for (auto place = places.last(size); place != PlaceSet::none; place = places.last(end)) {
            REQUIRE(place == *std::prev(expected.lower_bound(end)));
            end = place;
            for (std::uint64_t k = random.below(3); k > 0; --k) add(0, end);
        }
        CHECK(expected.lower_bound(end) == expected.begin());

        add(0, size);
        places.clear();
        CHECK(places.first(0) == PlaceSet::none);
    }
}
