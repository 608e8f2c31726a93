#include "pipeweaver/costdb/explain.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;
using doctest::Approx;

namespace {

Gemm product(std::int64_t m, std::int64_t n, std::int64_t k) { return {.m = m, .n = n, .k = k}; }

using Sizes = std::array<std::int64_t, 3>;

Gemm product(const Sizes& at) { return product(at[0], at[1], at[2]); }

double flops(const Sizes& at) {
    return 2. * static_cast<double>(at[0]) * static_cast<double>(at[1]) * static_cast<double>(at[2]);
}

struct Pair {
    Sizes from, to;
    double times;  // per FLOP, `to` over `from`
    bool is_named = false, is_found = false;

    bool jumps() const { return std::abs(std::log(times)) > std::log(1.15); }
    bool is_steady() const { return std::abs(std::log(times)) < std::log(1.05); }
    bool is_big() const { return from[0] >= 512 && flops(from) >= 0x1p34; }
};

// Points of the table that follow each other along one axis, the other two sizes equal.
std::vector<Pair> neighbours(const CostDatabase& database) {
    std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, std::map<std::int64_t, std::pair<Sizes, double>>>
        lines;
    for (const auto& p : database.measurements().gemm) {
        if (p.dtype != Dtype::bf16 || p.pass != Pass::forward) continue;
        const Sizes at{p.m, p.n, p.k};
        for (std::size_t axis = 0; axis < 3; ++axis)
            lines[{axis, at[(axis + 1) % 3], at[(axis + 2) % 3]}][at[axis]] = {
                at, static_cast<double>(p.latency_ns) / flops(at)};
    }
    std::vector<Pair> pairs;
    for (const auto& [key, line] : lines)
        for (auto from = line.begin(), to = std::next(from); to != line.end(); ++from, ++to)
            pairs.push_back(
                {from->second.first, to->second.first, to->second.second / from->second.second, false, false});
    return pairs;
}

// Of the pairs, the share with a cause that goes in the direction of the measured change, or in any.
struct Rates {
    double pairs = 0, found = 0, named = 0;
    double recall() const { return found / pairs; }
    double alarms() const { return named / pairs; }
};

double all_losses(const CostDatabase& database, const Sizes& at) { return explain(database, product(at)).losses.all(); }

// The pairs with whether they have a cause, and whether it goes in the direction of the measured change.
std::vector<Pair> judged(const CostDatabase& database) {
    auto pairs = neighbours(database);
    for (auto& pair : pairs) {
        if (!cause_between(database, product(pair.from), product(pair.to))) continue;
        pair.is_named = true;
        pair.is_found = (all_losses(database, pair.to) > all_losses(database, pair.from)) == (pair.times > 1);
    }
    return pairs;
}

template <class Which>
Rates rates(const std::vector<Pair>& pairs, Which which) {
    Rates rates;
    for (const auto& pair : pairs) {
        if (!which(pair)) continue;
        ++rates.pairs;
        rates.named += pair.is_named ? 1 : 0;
        rates.found += pair.is_found ? 1 : 0;
    }
    return rates;
}

}  // namespace

TEST_CASE("waves are tiles over multiprocessors, and the last one is waited for") {
    // 4096 x 4096 in tiles of 128 x 256: 32 x 16 = 512 of them on 108 multiprocessors, 4.741 waves. Of the work 0.85
    // waits for the fifth: (0.85 x 5 + 0.15 x 4.741) / 4.741.
    const auto found = explain(a100(), product(4096, 4096, 4096));
    REQUIRE(found.tiling);
    CHECK(std::tuple(found.tiling->rows, found.tiling->columns, found.tiling->parts, found.tiling->tiles) ==
          std::tuple(128, 256, 1, 512));
    CHECK(found.tiling->multiprocessors == 108);
    CHECK(found.tiling->waves == Approx(4.7407).epsilon(1e-4));
    CHECK(found.losses.wave == Approx(1.04648).epsilon(1e-4));
    CHECK(found.losses.alignment == 1);
    CHECK(found.losses.kernel == Approx(1));
    CHECK(found.losses.memory == 1);
}

TEST_CASE("the roofline is the device's peak and bandwidth") {
    // 2 x 4096^3 = 137.4 GFLOP at 312 TFLOP/s: 440.5 us. Three matrices of 32 MiB at 2039 GB/s: 49.4 us.
    const auto found = explain(a100(), product(4096, 4096, 4096));
    CHECK(found.flops == Approx(137.439e9).epsilon(1e-5));
    CHECK(found.peak_us == Approx(440.51).epsilon(1e-4));
    CHECK(found.traffic_bytes == 3. * 2 * 4096 * 4096);
    CHECK(found.traffic_us == Approx(49.37).epsilon(1e-3));
    CHECK(found.bound == Bound::compute);
    CHECK(found.cost.basis == Basis::exact);
    CHECK(found.share_of_peak == Approx(440.51e3 / static_cast<double>(found.cost.duration.count())).epsilon(1e-4));
    CHECK(found.tflops_per_s == Approx(312 * found.share_of_peak));
}

TEST_CASE("few rows are bound by memory, and next to nothing by the launch") {
    // 16 rows: 2 x 16 x 8192^2 at the peak is 6.9 us, reading 128 MiB of weights 66 us.
    CHECK(explain(a100(), product(16, 8192, 8192)).bound == Bound::memory);
    CHECK(explain(a100(), product(16, 8192, 8192)).losses.memory > 1);
    CHECK(explain(a100(), product(32, 32, 32)).bound == Bound::launch);
}

TEST_CASE("what tiles have outside of the output is the loss of alignment") {
    // 4224 columns are 16.5 tiles of 256: 17 of them hold 4352, 3 % more.
    const auto found = explain(a100(), product(8192, 4224, 4096));
    REQUIRE(found.tiling);
    REQUIRE(found.tiling->columns == 256);
    CHECK(found.losses.alignment == Approx(17 * 256 / 4224.));
}

TEST_CASE("losses multiply to the whole base") {
    // 1.3: how much faster than the peak the base takes the fastest tile to be. 3 us: its launch.
    const auto found = explain(a100(), product(2048, 2048, 2048));
    REQUIRE(found.tiling);
    const double full_us = found.peak_us / 1.3;
    const double base_us = found.losses.all() * full_us;
    CHECK(base_us == Approx(3 + base_us / found.losses.launch).epsilon(1e-9));
}

TEST_CASE("causes are named by what changes most") {
    // 27 x 8 tiles of 128 x 256 fill two waves of 108, 28 x 8 need a third.
    CHECK(cause_between(a100(), product(27 * 128, 2048, 1024), product(28 * 128, 2048, 1024)) == Cause::wave);
    CHECK(cause_between(a100(), product(28 * 128, 2048, 1024), product(27 * 128, 2048, 1024)) == Cause::wave);
    // As many weights are read for twice the rows.
    CHECK(cause_between(a100(), product(16, 8192, 8192), product(32, 8192, 8192)) == Cause::memory);
    CHECK(cause_between(a100(), product(32, 128, 128), product(64, 128, 128)) == Cause::launch);
    CHECK(cause_between(a100(), product(64, 16384, 16384), product(2048, 16384, 16384)) == Cause::crossover);
    CHECK(cause_between(a100(), product(8192, 8192, 8192), product(8192, 8192, 16384)) == std::nullopt);
    CHECK(name_of(Cause::crossover) == "crossover");
    CHECK(name_of(Bound::memory) == "memory");
}

TEST_CASE("on devices whose tables tiles do not explain none are named") {
    const auto found = explain(h100(), product(4096, 4096, 4096));
    CHECK(!found.tiling);
    CHECK(found.losses.wave == 1);
    CHECK(found.bound == Bound::compute);
}

TEST_CASE("rows of operands begin at multiples of 16 bytes, or fast kernels do not run") {
    CHECK(explain(a100(), product(100, 1032, 1024)).aligned);
    CHECK(!explain(a100(), product(100, 1028, 1024)).aligned);
    CHECK(!explain(a100(), product(100, 1024, 1021)).aligned);
}

TEST_CASE("sizes near lie within an eighth, at multiples of a power of two") {
    CHECK(sizes_near(512) ==
          std::vector<std::int64_t>{448, 456, 464, 472, 480, 488, 496, 504, 520, 528, 536, 544, 552, 560, 568, 576});
    const auto vocabulary = sizes_near(128'256);  // 128,256 / 64 = 2004: multiples of 1024
    CHECK(vocabulary.front() == 110 * 1024);
    CHECK(vocabulary.back() == 140 * 1024);
    CHECK(sizes_near(1) == std::vector<std::int64_t>{});
}

TEST_CASE("neighbours are faster per FLOP, the fastest of each axis, and say by how much") {
    const auto here = explain(a100(), product(28 * 128, 2048, 1024));
    const auto found = faster_neighbours(a100(), here);
    REQUIRE(!found.empty());
    for (const auto& one : found) {
        CHECK(one.gain > least_gain);
        CHECK(one.gain == Approx(one.there.tflops_per_s / here.tflops_per_s - 1));
        const double error = std::max(here.cost.error_percent, one.there.cost.error_percent);
        CHECK(one.beyond_error == (100 * one.gain > error));
    }
    CHECK(std::any_of(found.begin(), found.end(), [](const Neighbour& one) { return one.axis == "n"; }));
}

TEST_CASE("what the base has slower has no cause of being faster") {
    // At 144 rows the base is no longer traffic but tiles of 64 x 128 that reach beyond the output: 192 rows. The table
    // has less time per FLOP there.
    const auto here = explain(a100(), product(128, 7680, 4992)), there = explain(a100(), product(144, 7680, 4992));
    REQUIRE(there.tflops_per_s > here.tflops_per_s);
    CHECK(there.losses.all() > here.losses.all());
    CHECK(cause_between(a100(), here.product, there.product) == Cause::crossover);
    CHECK(cause_of_gain(a100(), here, there) == std::nullopt);
    CHECK(cause_of_gain(a100(), there, here) == Cause::crossover);
}

TEST_CASE("neighbours that last too long are left out, and gains that nobody would see") {
    // 86 days: twice the columns would last above 100. All are as fast as the peak allows.
    const auto here = explain(a100(), product(1 << 24, 1 << 24, 3 << 20));
    CHECK_THROWS_AS(static_cast<void>(explain(a100(), product(1 << 24, 1 << 25, 3 << 20))), Error);
    CHECK(faster_neighbours(a100(), here).empty());
}

TEST_CASE("another pass than forward is refused") {
    auto backward = product(512, 512, 512);
    backward.pass = Pass::backward;
    CHECK_THROWS_WITH_AS(static_cast<void>(explain(a100(), backward)), "pass: is backward, only forward is explained",
                         Error);
}

TEST_CASE("of the jumps between neighbours of A100's table at least 80 % have a cause, of the others few") {
    const auto pairs = judged(a100());
    REQUIRE(pairs.size() > 80'000);
    const auto jumps = rates(pairs, [](const Pair& pair) { return pair.jumps(); });
    const auto others = rates(pairs, [](const Pair& pair) { return !pair.jumps(); });
    const auto steady = rates(pairs, [](const Pair& pair) { return pair.is_steady(); });
    const auto big_jumps = rates(pairs, [](const Pair& pair) { return pair.jumps() && pair.is_big(); });
    const auto big_others = rates(pairs, [](const Pair& pair) { return !pair.jumps() && pair.is_big(); });
    MESSAGE("all: ", jumps.recall(), " of ", jumps.pairs, " jumps, ", others.alarms(), " of ", others.pairs,
            " others, ", steady.alarms(), " of ", steady.pairs, " steady ones");
    MESSAGE("big: ", big_jumps.recall(), " of ", big_jumps.pairs, ", ", big_others.alarms(), " of ", big_others.pairs);
    CHECK(jumps.pairs > 30'000);
    CHECK(jumps.recall() >= 0.8);
    CHECK(big_jumps.recall() >= 0.8);
    CHECK(others.alarms() <= 0.25);
    CHECK(big_others.alarms() <= 0.15);
    CHECK(steady.alarms() <= 0.12);
}
