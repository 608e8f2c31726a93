#include "partition/exact_cut.hpp"

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <tuple>

using namespace pipeweaver;
using namespace pipeweaver::partition;

namespace {

using Counts = std::vector<std::int64_t>;

// What a cut is judged by, smaller is better: bytes short, load, stage, then how far each end is from even.
using Judged = std::tuple<std::int64_t, std::int64_t, std::int64_t, Counts>;

Judged judged(const Row& row, const Counts& counts) {
    const auto stages = static_cast<std::int64_t>(counts.size());
    std::int64_t all = 0, before = 0, longest = 0;
    for (const RowLayer& layer : row.layers) all += layer.time;
    Counts load, bytes, ends;
    for (const RowRank& rank : row.ranks) {
        load.push_back(rank.load);
        bytes.push_back(-rank.room.count);
    }
    std::size_t layer = 0;
    for (std::size_t s = 0; s < counts.size(); ++s) {
        std::int64_t time = 0;
        for (std::int64_t i = 0; i < counts[s]; ++i, ++layer) {
            time += row.layers[layer].time;
            bytes[s % load.size()] += row.layers[layer].always.count +
                                      (row.passes.empty() ? 1 : row.passes[s]) * row.layers[layer].held.count;
        }
        load[s % load.size()] += time;
        longest = std::max(longest, time);
        before += time;
        ends.push_back(std::abs(before * stages - all * (static_cast<std::int64_t>(s) + 1)));
        ends.push_back(-counts[s]);
    }
    const std::int64_t over = std::max<std::int64_t>(0, *std::max_element(bytes.begin(), bytes.end()));
    return {over, *std::max_element(load.begin(), load.end()), longest, ends};
}

// Every cut, tried.
void try_all(const Row& row, Counts& counts, std::size_t stage, std::int64_t left, std::optional<Counts>& best) {
    const auto after = static_cast<std::int64_t>(counts.size() - stage) - 1;
    if (after == 0) {
        counts[stage] = left;
        if (!best || judged(row, counts) < judged(row, *best)) best = counts;
        return;
    }
    for (counts[stage] = 1; counts[stage] + after <= left; ++counts[stage]) {
        const std::int64_t own = counts[stage];
        try_all(row, counts, stage + 1, left - own, best);
        counts[stage] = own;
    }
}

Counts best_of_all(const Row& row) {
    Counts counts(row.ranks.size() * static_cast<std::size_t>(row.chunks));
    std::optional<Counts> best;
    try_all(row, counts, 0, static_cast<std::int64_t>(row.layers.size()), best);
    return *best;
}

std::int64_t up_to(Random& random, std::uint64_t most) { return static_cast<std::int64_t>(random.below(most + 1)); }

// Up to 4 ranks, 3 chunks and 12 layers: all different, of two kinds, or alike with an embedding and a head; a quarter
// of the cases is without a memory limit, the others have one that is near what is needed, or too small.
Row random_row(std::uint64_t number) {
    Random random(46, number);
    Row row;
    row.chunks = 1 + up_to(random, 2);
    row.ranks.resize(1 + static_cast<std::size_t>(up_to(random, 3)));
    const std::size_t stages = row.ranks.size() * static_cast<std::size_t>(row.chunks);
    const std::size_t layers = stages + random.below(13 - stages);
    const RowLayer kinds[2] = {{1 + up_to(random, 20), {up_to(random, 9)}, {up_to(random, 3)}},
                               {1 + up_to(random, 20), {up_to(random, 9)}, {up_to(random, 3)}}};
    const std::int64_t mix = up_to(random, 2);
    for (std::size_t i = 0; i < layers; ++i)
        row.layers.push_back(mix == 0 ? RowLayer{up_to(random, 20), {up_to(random, 9)}, {up_to(random, 3)}}
                                      : kinds[mix == 1 ? random.below(2) : 0]);
    row.layers.front().time += up_to(random, 10);
    row.layers.back().time += up_to(random, 30);
    row.layers.back().always += Bytes{up_to(random, 20)};
    if (up_to(random, 1) == 1)
        for (std::size_t s = 0; s < stages; ++s) row.passes.push_back(1 + up_to(random, 3));
    Bytes all;
    for (const RowLayer& layer : row.layers) all += layer.always + 2 * layer.held;
    const std::int64_t tight = up_to(random, 3), mean = all.count / static_cast<std::int64_t>(row.ranks.size());
    for (RowRank& rank : row.ranks) {
        rank.load = up_to(random, 40);
        rank.room = Bytes{tight == 0 ? 1'000'000 : mean * (2 + tight) / 4 + up_to(random, 12)};
    }
    return row;
}

// Repeated blocks with an embedding in front and a head behind.
Row blocks(std::size_t ranks, std::int64_t chunks, std::size_t layers) {
    Row row;
    row.chunks = chunks;
    row.ranks.assign(ranks, {0, 1000_GiB});
    row.layers.assign(layers, {1'000'000, 2_GiB, 1_GiB});
    row.layers.front().time += 123'456;
    row.layers.back().time += 2'654'321;
    row.layers.back().always += 5_GiB;
    return row;
}

}  // namespace

TEST_CASE("exact cuts are those that trying every cut finds, memory and what is short of it included") {
    constexpr std::size_t cases = 300;
    std::vector<ExactCut> cuts(cases);
    std::size_t short_ones = 0, changed_by_memory = 0;
    for (std::size_t i = 0; i < cases; ++i) {
        CAPTURE(i);
        Row row = random_row(i);
        cuts[i] = exact_cut(row);
        const Counts best = best_of_all(row);
        CHECK(cuts[i].counts == best);
        const auto [over, load, stage, ends] = judged(row, best);
        CHECK(cuts[i].short_by.count == over);
        CHECK(cuts[i].largest_load == load);
        CHECK(cuts[i].longest_stage == stage);
        CHECK(cuts[i].proven);
        if (!cuts[i].fits()) ++short_ones;
        for (RowRank& rank : row.ranks) rank.room = Bytes{1'000'000};
        if (cuts[i].fits() && best_of_all(row) != best) ++changed_by_memory;
    }
    CHECK(short_ones > 30);
    CHECK(changed_by_memory > 20);
    for (const int threads : {1, 2, 16}) {
        std::vector<ExactCut> again(cases);
        on_threads(threads)(cases, [&](std::size_t i) { again[i] = exact_cut(random_row(i)); });
        for (std::size_t i = 0; i < cases; ++i) CHECK(again[i].counts == cuts[i].counts);
    }
}

TEST_CASE("the rank with the head gets fewer layers, by hand") {
    // 14 blocks of 2 ms, a head of 5 on the last: 33 ms over 4 ranks. 8 ms is 4 blocks, or 1 with the head: 4 + 4 + 4
    // + 1 is 13, one too few. With 9 ms the last takes 2.
    Row row;
    row.ranks.assign(4, {0, 100_GiB});
    row.layers.assign(14, {2, 1_GiB, {}});
    row.layers.back().time += 5;
    const ExactCut cut = exact_cut(row);
    CHECK(cut.largest_load == 9);
    CHECK(cut.counts == Counts{4, 4, 4, 2});

    // Rank 0 has 4 ms to do elsewhere: within 9 ms 2 + 4 + 4 + 2 is too few, within 10 it is 3 + 5 + 5 + 2.
    row.ranks.front().load = 4;
    CHECK(exact_cut(row).largest_load == 10);
    // No rank holds more than 4 blocks: within 10 ms 3 + 4 + 4 + 2 is one too few, within 11 the last takes 3.
    for (RowRank& rank : row.ranks) rank.room = 4_GiB;
    const ExactCut tight = exact_cut(row);
    CHECK(tight.fits());
    CHECK(tight.largest_load == 11);
    CHECK(tight.counts == Counts{3, 4, 4, 3});
}

TEST_CASE("where no cut fits, the rank, what it is short of, and what it holds are said") {
    // 8 layers of 3 GiB, and 1 GiB a pass, of which the first rank keeps two: 5 GiB a layer there, 4 on the other.
    Row row;
    row.ranks.assign(2, {0, 14_GiB});
    row.layers.assign(8, {1, 3_GiB, 1_GiB});
    row.passes = {2, 1};
    const ExactCut cut = exact_cut(row);
    // 3 layers take 15 GiB and leave 5 that take 20; 4 take 20 and leave 4 that take 16: 6 GiB short either way.
    CHECK(!cut.fits());
    CHECK(cut.short_by == 6_GiB);
    for (RowRank& rank : row.ranks) rank.room += cut.short_by;
    CHECK(exact_cut(row).fits());
    for (RowRank& rank : row.ranks) rank.room -= Bytes{1};
    CHECK(!exact_cut(row).fits());
}

TEST_CASE("layers alike but for embedding and head are cut exactly, whatever the number of stages") {
    struct Size {
        std::uint32_t ranks;
        int chunks;
        std::uint32_t layers;
    };
    for (const Size& size :
         {Size{8, 1, 80}, Size{8, 4, 80}, Size{8, 7, 63}, Size{16, 3, 100}, Size{16, 8, 140}, Size{128, 1, 300}}) {
        const std::uint32_t ranks = size.ranks, layers = size.layers;
        const int chunks = size.chunks;
        const Row row = blocks(ranks, chunks, layers);
        const ExactCut cut = exact_cut(row);
        CHECK(cut.proven);
        CHECK(std::accumulate(cut.counts.begin(), cut.counts.end(), std::int64_t{0}) == layers);
        // By count alone: so many whole blocks on each rank, fewer by the embedding on the first, by the head on the
        // last.
        const auto room_for = [&](std::int64_t load) {
            const std::int64_t block = row.layers[1].time;
            std::int64_t most = 0;
            for (std::size_t r = 0; r < ranks; ++r) {
                std::int64_t free = load;
                if (r == 0) free -= row.layers.front().time - block;
                if (r + 1 == ranks) free -= row.layers.back().time - block;
                if (free < chunks * block) return false;
                most += free / block;
            }
            return most >= static_cast<std::int64_t>(layers);
        };
        CHECK(room_for(cut.largest_load));
        CHECK(!room_for(cut.largest_load - 1));
    }
}

TEST_CASE("with one chunk a rank, a search goes through no more than stages times layers states, of any kinds") {
    Random random(7);
    Row row;
    row.ranks.assign(64, {0, 1000_GiB});
    for (int i = 0; i < 200; ++i) row.layers.push_back({1 + up_to(random, 1'000'000), 1_GiB, {}});
    const ExactCut cut = exact_cut(row);
    CHECK(cut.proven);
    CHECK(cut.largest_load == cut.longest_stage);
}
