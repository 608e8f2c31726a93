// What a rank holds at least, and cuts by time and memory, worked by hand and by trying every cut.
#include "partition/rank_memory.hpp"

#include "partition/one_chain.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/least_memory.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::partition;

namespace {

using emulator::LayerRange;

// So many passes of the stage's layers are in flight where this is stage number `stage`.
std::int64_t in_flight(const RankMemory& memory, std::size_t stage, Bytes held, const LayerRange& layers) {
    // Of the last rank's last stage one pass is in flight.
    const Bytes always = memory.of_layers(layers, memory.ranks() - 1) - held;
    return (memory.of_layers(layers, stage) - always).count / held.count;
}

std::int64_t longest(const std::vector<std::int64_t>& times, const std::vector<std::size_t>& ends) {
    std::int64_t most = 0;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
        std::int64_t sum = 0;
        for (; begin < end; ++begin) sum += times[begin];
        most = std::max(most, sum);
    }
    return most;
}

// Every cut of the layers from `from` on, tried.
std::int64_t shortest(const std::vector<std::int64_t>& times, std::size_t from, std::size_t parts) {
    std::int64_t sum = 0, best = std::numeric_limits<std::int64_t>::max();
    if (parts == 1) {
        for (; from < times.size(); ++from) sum += times[from];
        return sum;
    }
    for (std::size_t end = from + 1; end + parts - 1 <= times.size(); ++end) {
        sum += times[end - 1];
        best = std::min(best, std::max(sum, shortest(times, end, parts - 1)));
    }
    return best;
}

}  // namespace

TEST_CASE("of the first rank a pass for each rank is in flight, of the last one") {
    const testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {1, 1, 1, 1, 1, 1});
    const LayerRange layers{1, 1, 2};
    std::vector<emulator::PassShape> mean(2);
    mean[1] = {{1024 + 64}};
    const Bytes held = emulator::least_pass(setup, {RankId{0}, {layers}}, mean).held;
    REQUIRE(held > Bytes{});
    const RankMemory memory(setup, setup.microbatches, 1);
    for (std::size_t stage = 0; stage < 4; ++stage)
        CHECK(in_flight(memory, stage, held, layers) == 4 - static_cast<std::int64_t>(stage));
    // Of two microbatches no more than two are.
    const RankMemory few(setup, {setup.microbatches[0], setup.microbatches[1]}, 1);
    CHECK(in_flight(few, 0, held, layers) == 2);
}

TEST_CASE("with two chunks a rank warms up chunk by chunk") {
    const testing::SmallWorkload setup({.tp = 1, .pp = 2, .dp = 1}, {1, 1, 1, 1});
    const LayerRange layers{1, 1, 1};
    std::vector<emulator::PassShape> mean(2);
    mean[1] = {{1024 + 64}};
    const Bytes held = emulator::least_pass(setup, {RankId{0}, {layers}}, mean).held;
    const RankMemory memory(setup, setup.microbatches, 2);
    // Rank 0 begins with 5 forwards, 2 of stage 0, 2 of stage 2, 1 of stage 0; rank 1 with 3, 2 of stage 1 and 1 of 3.
    const Bytes always = memory.of_layers(layers, 3) - held;
    for (const auto& [stage, passes] : {std::pair{0U, 3}, std::pair{1U, 2}, std::pair{2U, 2}, std::pair{3U, 1}})
        CHECK(memory.of_layers(layers, stage) == always + passes * held);
}

TEST_CASE("a rank holds weights, the mean passes in flight, the largest pass and four messages of it") {
    const testing::SmallWorkload setup({.tp = 1, .pp = 2, .dp = 1}, {0, 8, 4});
    const auto chain = setup.cut("megatron").chains.front();
    const RankMemory memory(setup, setup.microbatches, 1);
    const auto always = emulator::held_always(setup, {chain});
    // 4 images of 256 patches and 1024 + 4 x 64 positions in the mean, twice as many images in the largest.
    const std::vector<emulator::PassShape> mean{{{1024}}, {{1280}}}, largest{{{2048}}, {{1536}}};
    const auto least = memory.least(chain);
    REQUIRE(least.size() == 2);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        const auto big = emulator::least_pass(setup, chain.stages[rank], largest);
        const auto usual = emulator::least_pass(setup, chain.stages[rank], mean);
        CHECK(least[rank] == always[rank].total() + (rank == 0 ? 2 : 1) * usual.held + big.transient + 4 * big.message);
    }
    CHECK(emulator::least_pass(setup, chain.stages[1], largest).message > Bytes{});
}

TEST_CASE("with room for everything a cut to fit is as short as trying every cut finds") {
    const testing::SmallWorkload setup({.tp = 1, .pp = 2, .dp = 1});
    for (std::uint64_t number = 0; number < 60; ++number) {
        CAPTURE(number);
        Random random(number);
        const std::int64_t chunks = 1 + static_cast<std::int64_t>(random.below(2));
        const auto stages = static_cast<std::size_t>(2 * chunks);
        std::vector<LayerRange> layers;
        std::vector<std::int64_t> times;
        for (std::int64_t layer = 0; layer < 8; ++layer) {
            layers.push_back({1, layer, 1});
            times.push_back(1 + static_cast<std::int64_t>(random.below(9)));
        }
        std::vector<std::size_t> found;
        const RankMemory memory(setup, setup.microbatches, chunks);
        const auto cut = cut_to_fit(memory, layers, times, stages, [&](const std::vector<std::size_t>& ends) {
            found = ends;
            return one_chain(setup, "cut", chunks, layers, ends);
        });
        REQUIRE(cut);
        CHECK(longest(times, found) == shortest(times, 0, stages));
    }
}
