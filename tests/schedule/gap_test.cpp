#include "pipeweaver/schedule/gap.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;

TEST_CASE("the gap is relative to the bound") {
    CHECK(schedule::relative_gap(Duration{120}, Duration{100}) == 0.2);
    CHECK(schedule::relative_gap(Duration{100}, Duration{100}) == 0);
}
