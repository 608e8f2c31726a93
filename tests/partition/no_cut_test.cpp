#include "pipeweaver/partition/no_cut.hpp"

#include "partition/level_chains.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::partition;

namespace {

// How much of the device a setup may use so that `bytes` are left to a rank.
emulator::Headroom leaving(const emulator::Setup& setup, Bytes bytes) {
    const double usable = static_cast<double>(emulator::usable_bytes(setup.cluster).count);
    return {static_cast<std::int64_t>(1e6 * (1 - static_cast<double>(bytes.count) / usable))};
}

}  // namespace

TEST_CASE("a model that fits is not said to have no cut, one that does not says rank, bytes and what would do") {
    testing::SmallWorkload setup({.tp = 1, .pp = 2, .dp = 1}, {7, 0, 3, 12});
    CHECK(!why_no_cut_fits(setup, setup.microbatches));

    // Both ranks together hold half of what all layers take at least, so less is too little whatever the cut.
    Bytes all;
    for (const ModuleRow& row : module_rows(setup, setup.microbatches))
        for (const RowLayer& layer : row.layers) all += layer.always + layer.held;
    setup.headroom = leaving(setup, Bytes{all.count / 4});
    const auto none = why_no_cut_fits(setup, setup.microbatches);
    REQUIRE(none);
    CHECK(none->capacity == emulator::capacity_of(setup));
    CHECK(none->short_by() > Bytes{});
    CHECK(2 * (none->always + none->held) >= all);
    // The whole device is large enough: less of it kept free is what would do.
    REQUIRE(none->change.starts_with("--headroom "));
    const double percent = std::stod(none->change.substr(11));
    setup.headroom = {static_cast<std::int64_t>(percent * 1e4)};
    CHECK(!why_no_cut_fits(setup, setup.microbatches));
    setup.headroom = {static_cast<std::int64_t>((percent + 0.2) * 1e4)};
    CHECK(why_no_cut_fits(setup, setup.microbatches));
    CHECK(none->text().starts_with("no cut over 2 ranks fits with all recomputed"));
}

TEST_CASE("chains of modules are levelled: each layer once, the fullest rank with less to do, memory as it must be") {
    testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {7, 0, 3, 12});
    setup.model.modules[0].architecture.layers = 22;  // two ranks have a layer more
    setup.model.modules[1].architecture.layers = 18;
    const auto rows = module_rows(setup, setup.microbatches);
    std::vector<emulator::Chain> even;
    for (std::size_t m = 0; m < 2; ++m) {
        emulator::Chain chain{setup.model.modules[m].name, {}};
        const std::int64_t layers = setup.model.modules[m].architecture.layers;
        for (std::int64_t s = 0, first = 0; s < 4; ++s) {
            const std::int64_t count = layers / 4 + (s < layers % 4 ? 1 : 0);
            chain.stages.push_back({RankId{static_cast<std::uint32_t>(s)}, {{m, first, count}}});
            first += count;
        }
        even.push_back(std::move(chain));
    }
    const auto level = level_chains(setup, rows, even);
    REQUIRE(level);
    CHECK(level->load < level->load_before);
    std::vector<std::int64_t> load(4);
    for (std::size_t m = 0; m < 2; ++m) {
        std::int64_t next = 0;
        REQUIRE(level->chains[m].stages.size() == 4);
        for (const auto& stage : level->chains[m].stages) {
            REQUIRE(stage.parts.size() == 1);
            CHECK(stage.parts[0].first == next);
            for (std::int64_t i = 0; i < stage.parts[0].count; ++i)
                load[index(stage.rank)] += rows[m].layers[static_cast<std::size_t>(next++)].time;
        }
        CHECK(next == setup.model.modules[m].architecture.layers);
    }
    CHECK(*std::max_element(load.begin(), load.end()) == level->load);
    // Nothing is gained twice.
    CHECK(!level_chains(setup, rows, level->chains));

    // Where no cut fits, chains stay as they are.
    setup.headroom = leaving(setup, Bytes{1 << 20});
    CHECK(!level_chains(setup, rows, even));
}
