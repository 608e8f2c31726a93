#include "service/watch/history.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver::service;

namespace {

DoneStep done(std::int64_t step) {
    DoneStep one;
    one.session = "job";
    one.step = step;
    return one;
}

}  // namespace

TEST_CASE("a history keeps the last steps, and gives those that one has not seen yet") {
    History history(3);
    CHECK(history.after(0).empty());
    for (std::int64_t step = 10; step < 15; ++step) history.add(done(step));
    const auto kept = history.after(0);
    REQUIRE(kept.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(kept[i].number == i + 3);
        CHECK(kept[i].step == static_cast<std::int64_t>(i) + 12);
    }
    const auto last = history.after(4);
    REQUIRE(last.size() == 1);
    CHECK(last[0].step == 14);
    CHECK(history.after(5).empty());
    CHECK(history.after(99).empty());
}
