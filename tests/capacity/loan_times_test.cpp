#include "capacity/jobs/queue_state.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::capacity;
using namespace std::chrono_literals;

namespace {

// By night, and two more that meet at noon.
const std::vector<LoanWindow> windows{{20h, 32h, 256}, {10h, 12h, 8}, {12h, 13h, 4}};

}  // namespace

TEST_CASE("GPUs on loan over a day and a night") {
    const LoanTimes loans(windows);
    CHECK(loans.gpus_at(0h) == 256);
    CHECK(loans.gpus_at(8h - 1ns) == 256);
    CHECK(loans.gpus_at(8h) == 0);
    CHECK(loans.gpus_at(11h) == 8);
    CHECK(loans.gpus_at(12h) == 4);
    CHECK(loans.gpus_at(19h) == 0);
    CHECK(loans.gpus_at(20h) == 256);
    CHECK(loans.gpus_at(24h * 9 + 21h) == 256);
    CHECK(loans.next_change(0h) == 8h);
    CHECK(loans.next_change(8h) == 10h);
    CHECK(loans.next_change(21h) == 32h);
    CHECK(loans.next_rise(8h) == 10h);
    CHECK(loans.next_rise(10h) == 20h);
    CHECK(loans.next_drop(8h) == 12h);
    CHECK(loans.next_drop(13h) == 32h);
    // 12 h of 256, 2 h of 8, 1 h of 4, three days and the first night's end.
    CHECK((loans.gpu_time(0h, 72h) == Wide{3 * (12 * 256 + 2 * 8 + 4)} * 3'600'000'000'000));
    CHECK((loans.gpu_time(7h, 11h) == Wide{256 + 8} * 3'600'000'000'000));
}

TEST_CASE("a loan that never ends has no change") {
    const LoanTimes none({}), always(std::vector<LoanWindow>{{0h, 24h, 4}});
    const LoanTimes halves(std::vector<LoanWindow>{{0h, 12h, 4}, {12h, 24h, 4}});
    CHECK(none.gpus_at(5h) == 0);
    CHECK(always.gpus_at(5h) == 4);
    CHECK(halves.gpus_at(23h) == 4);
    CHECK(!none.next_change(0h));
    CHECK(!always.next_drop(0h));
    CHECK(!halves.next_rise(30h));
    CHECK((always.gpu_time(1h, 2h) == Wide{4} * 3'600'000'000'000));
}
