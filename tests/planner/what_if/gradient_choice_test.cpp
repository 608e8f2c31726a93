// Which gradients travel in fewer bytes: by hand, and against trying everything.
#include "pipeweaver/planner/gradient_choice.hpp"

#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using emulator::GradientWay;
using emulator::RankGradients;
using Ways = std::vector<std::uint8_t>;

namespace {

GradientWay way(std::int64_t compress, std::int64_t exchange, std::int64_t decompress) {
    return {Duration{compress}, Duration{exchange}, Duration{decompress}, {}};
}

// Buckets {ready, ways}.
RankGradients rank_of(std::int64_t end, std::vector<std::pair<std::int64_t, std::vector<GradientWay>>> buckets,
                      std::int64_t rest = 0) {
    RankGradients rank{Duration{end}, Duration{rest}, {}};
    for (auto& [ready, ways] : buckets) rank.buckets.push_back({Duration{ready}, 1, std::move(ways)});
    return rank;
}

Duration best_by_force(const RankGradients& rank) {
    Duration best = Duration::max();
    Ways ways(rank.buckets.size(), 0);
    while (true) {
        best = std::min(best, emulator::end_of(rank, ways));
        std::size_t b = 0;
        while (b < ways.size() && ++ways[b] == rank.buckets[b].ways.size()) ways[b++] = 0;
        if (b == ways.size()) return best;
    }
}

// With kernels from nothing to more than they save.
RankGradients random_buckets(Random& random, std::uint64_t buckets, std::uint64_t ways) {
    const auto up_to = [&](std::uint64_t most) { return static_cast<std::int64_t>(random.below(most + 1)); };
    RankGradients rank;
    std::int64_t now = 0;
    for (std::uint64_t left = buckets; left > 0; --left) {
        now += up_to(2000);
        const std::int64_t time = 1 + up_to(random.below(2) == 0 ? 500 : 5000);
        std::vector<GradientWay> all{way(0, time, 0)};
        for (std::uint64_t w = 1; w < ways; ++w)
            all.push_back(way(time * up_to(40) / 100, 1 + time * up_to(90) / 100, time * up_to(40) / 100));
        rank.buckets.push_back({Duration{now}, 1, std::move(all)});
    }
    rank.end_of_tasks = Duration{now + up_to(4000)};
    return rank;
}

// Up to twelve buckets in two ways, or fewer in three or four.
RankGradients random_rank(std::uint64_t seed) {
    Random random(seed);
    const std::uint64_t ways = 2 + random.below(3), most = ways == 2 ? 12 : ways == 3 ? 7 : 5;
    return random_buckets(random, 1 + random.below(most), ways);
}

}  // namespace

TEST_CASE("buckets go one after the other, and kernels make compute late") {
    const auto rank = rank_of(200, {{100, {way(0, 80, 0), way(10, 40, 5)}}, {150, {way(0, 80, 0), way(10, 40, 5)}}}, 7);
    CHECK(emulator::end_of(rank, Ways{0, 0}) == Duration{100 + 80 + 80 + 7});
    // Sent from 110 to 150, taken apart when the second is ready at 160, which is compressed until 175 and sent until
    // 215. Compute ends at 200 + 10 + 5 + 10 and takes the second apart then.
    CHECK(emulator::end_of(rank, Ways{1, 1}) == Duration{230 + 7});
    // The first from 100 to 180, the second compressed until 160, sent until 220, taken apart until 225.
    CHECK(emulator::end_of(rank, Ways{0, 1}) == Duration{225 + 7});
    CHECK(emulator::end_of(rank_of(200, {}, 3), {}) == Duration{203});
}

TEST_CASE("traffic that is exposed is compressed where its kernels take less than they save") {
    const auto good = rank_of(100, {{100, {way(0, 100, 0), way(10, 50, 10)}}});
    const auto choice = choose_gradients({good}, 2);
    CHECK(choice.ways == std::vector<Ways>{{1}});
    CHECK(choice.makespan_before() == Duration{200});
    CHECK(choice.makespan_after() == Duration{170});
    const auto dear = rank_of(100, {{100, {way(0, 100, 0), way(30, 50, 20)}}});
    CHECK(choose_gradients({dear}, 2).ways == std::vector<Ways>{{0}});
}

TEST_CASE("nothing is compressed where traffic is hidden, by the rank's own backwards or by other ranks") {
    const auto hidden = rank_of(1000, {{100, {way(0, 100, 0), way(0, 1, 0)}}, {500, {way(0, 300, 0), way(0, 1, 0)}}});
    const auto choice = choose_gradients({hidden}, 2);
    CHECK(choice.ways == std::vector<Ways>{{0, 0}});
    CHECK(choice.makespan_after() == choice.makespan_before());

    const auto early = rank_of(400, {{400, {way(0, 300, 0), way(0, 1, 0)}}});
    const auto both = choose_gradients({hidden, early}, 2);
    CHECK(both.ways == std::vector<Ways>{{0, 0}, {0}});
    CHECK(both.after == both.before);
}

TEST_CASE("of formats that do the same the first is taken, and one may be asked for alone") {
    const std::vector<GradientWay> ways{way(0, 100, 0), way(0, 50, 0), way(0, 10, 0)};
    const auto last = rank_of(100, {{100, ways}}), other = rank_of(150, {});
    CHECK(choose_gradients({last, other}, 3).ways.front() == Ways{1});
    CHECK(choose_gradients({last, other}, 2).ways.front() == Ways{1});
    CHECK(choose_gradients_alone({last, other}, 2).ways.front() == Ways{2});
    CHECK(choose_gradients({last}, 3).ways.front() == Ways{2});
    CHECK(choose_gradients({}, 3).makespan_after() == Duration{});
}

TEST_CASE("what is exposed is within 5 % of the best of all choices, and each that is taken helps") {
    std::size_t shorter = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(seed);
        const RankGradients rank = random_rank(seed);
        const auto choice = choose_gradients({rank}, static_cast<std::uint8_t>(rank.buckets[0].ways.size()));
        const Duration best = best_by_force(rank), found = choice.makespan_after();
        const double exposed = static_cast<double>((found - rank.end_of_tasks).count());
        CHECK(exposed <= 1.05 * static_cast<double>((best - rank.end_of_tasks).count()));
        if (choice.makespan_before() == rank.end_of_tasks) CHECK(choice.ways.front() == Ways(rank.buckets.size(), 0));
        shorter += found < choice.makespan_before() ? 1 : 0;
        for (std::size_t b = 0; b < rank.buckets.size(); ++b) {
            Ways without = choice.ways.front();
            if (std::exchange(without[b], std::uint8_t{0}) != 0) CHECK(emulator::end_of(rank, without) > found);
        }
    }
    CHECK(shorter > 30);
}

TEST_CASE("however many buckets there are, any format is no later than one alone") {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const RankGradients rank = random_buckets(random, 30, 4);
        const Duration any = choose_gradients({rank}, 4).makespan_after();
        for (std::uint8_t alone = 1; alone < 4; ++alone)
            CHECK(any <= choose_gradients_alone({rank}, alone).makespan_after());
    }
}
