// Clocks of ranks, aligned by messages with known true offsets.
#include "pipeweaver/measured/clocks.hpp"

#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

using namespace pipeweaver;
using namespace pipeweaver::measured;
using namespace std::chrono_literals;

namespace {

// A rank's clock shows true time + ahead.
struct World {
    std::vector<Duration> ahead;
    std::vector<Message> messages;

    void send(std::size_t from, std::size_t to, Duration at, Duration takes) {
        messages.push_back({from, to, at + ahead[from], at + takes + ahead[to]});
    }
    // What brings a rank's clock to the reference's.
    Duration true_offset(std::size_t rank, const Clocks& clocks) const { return ahead[clocks.reference] - ahead[rank]; }
};

}  // namespace

TEST_CASE("two ranks: the middle of what messages both ways leave, and half of it") {
    World world{{0ns, 1s}, {}};
    world.send(0, 1, 10us, 4us);
    world.send(1, 0, 20us, 10us);

    const auto clocks = align(2, world.messages);

    CHECK(clocks.reference == 0);
    CHECK(clocks.offset[1] == -1s + 3us);
    CHECK(clocks.uncertainty[1] == 7us);
    CHECK(clocks.loosened == 0ns);
}

TEST_CASE("random clocks of random pipelines are recovered within the stated uncertainty") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed);
        const std::size_t ranks = 2 + random.below(9);
        World world;
        for (std::size_t r = 0; r < ranks; ++r)
            world.ahead.push_back(Duration{static_cast<std::int64_t>(random.below(4'000'000'000)) - 2'000'000'000});
        for (std::size_t i = 0; i < 40; ++i)
            for (std::size_t r = 0; r + 1 < ranks; ++r) {
                const Duration at{static_cast<std::int64_t>(random.below(1'000'000'000))};
                world.send(r, r + 1, at, Duration{1 + static_cast<std::int64_t>(random.below(200'000))});
                world.send(r + 1, r, at, Duration{1 + static_cast<std::int64_t>(random.below(200'000))});
            }

        const auto clocks = align(ranks, world.messages);

        CHECK(clocks.loosened == 0ns);
        for (std::size_t r = 0; r < ranks; ++r) {
            REQUIRE(clocks.uncertainty[r]);
            CHECK(std::chrono::abs(clocks.offset[r] - world.true_offset(r, clocks)) <= *clocks.uncertainty[r]);
            CHECK(*clocks.uncertainty[r] <= static_cast<std::int64_t>(ranks) * 100us);
        }
        for (const Message& one : world.messages)  // the answer itself is possible
            CHECK(one.sent + clocks.offset[one.from] <= one.arrived + clocks.offset[one.to]);
    }
}

TEST_CASE("messages one way alone state no uncertainty, and none arrives before it was sent") {
    World world{{0ns, 5s, -3s}, {}};
    world.send(0, 1, 10us, 8us);
    world.send(0, 1, 30us, 3us);
    world.send(1, 2, 50us, 2us);
    world.send(2, 1, 60us, 2us);

    const auto clocks = align(3, world.messages);

    CHECK(clocks.reference == 1);
    CHECK_FALSE(clocks.uncertainty[0]);
    CHECK(clocks.offset[0] == world.true_offset(0, clocks) + 3us);  // the quickest took no time
    CHECK(clocks.uncertainty[2] == 2us);
    for (const Message& one : world.messages)
        CHECK(one.sent + clocks.offset[one.from] <= one.arrived + clocks.offset[one.to]);
}

TEST_CASE("messages that contradict each other loosen every bound by as little as it takes") {
    const std::vector<Message> messages{{0, 1, 10us, 8us}, {1, 0, 10us, 6us}};  // 6 us too early around the circle

    const auto clocks = align(2, messages);

    CHECK(clocks.loosened == 3us);
}
