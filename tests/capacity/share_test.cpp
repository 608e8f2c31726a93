#include "pipeweaver/capacity/share.hpp"

#include "capacity/jobs/knapsack.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "tests/capacity/random_cluster.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::capacity;
using namespace pipeweaver::testing;

namespace {

// Every way to choose one option each.
std::optional<Wide> least_by_trying_all(std::span<const KnapsackItem> items, std::int64_t capacity) {
    if (items.empty()) return Wide{0};
    std::optional<Wide> least;
    for (const KnapsackOption& option : items.front()) {
        if (option.gpus > capacity) continue;
        const auto others = least_by_trying_all(items.subspan(1), capacity - option.gpus);
        if (others && (!least || option.cost + *others < *least)) least = option.cost + *others;
    }
    return least;
}

std::vector<KnapsackItem> drawn_items(std::uint64_t number) {
    Random random(3, number);
    std::vector<KnapsackItem> items(1 + random.below(6));
    const auto unit = static_cast<std::int64_t>(1 + random.below(3));
    for (KnapsackItem& item : items)
        for (std::size_t n = 1 + random.below(5); n > 0; --n)
            item.push_back({unit * static_cast<std::int64_t>(random.below(7)), Wide(random.below(20))});
    return items;
}

struct Waits {
    Wide weight = 0, time = 0;  // of who waits, of who runs
    friend bool operator<(const Waits& a, const Waits& b) {
        return a.weight != b.weight ? a.weight < b.weight : a.time < b.time;
    }
};

// Least weight waits, then least weighted time: every way tried, the time in the simplest form.
Waits share_by_trying_all(std::span<const TrainingJob> jobs, std::int64_t gpus) {
    if (jobs.empty()) return {};
    const TrainingJob& job = jobs.front();
    Waits best = share_by_trying_all(jobs.subspan(1), gpus);
    best.weight += job.weight_thousandths;
    for (const Speed& speed : job.speeds) {
        if (speed.gpus > gpus) continue;
        Waits one = share_by_trying_all(jobs.subspan(1), gpus - speed.gpus);
        Wide time = work_of(job) / speed.tokens_per_ks;
        while (time * speed.tokens_per_ks < work_of(job)) ++time;
        one.time += job.weight_thousandths * time;
        if (one < best) best = one;
    }
    return best;
}

}  // namespace

TEST_CASE("the knapsack costs what trying every choice costs, on 200 random cases") {
    std::size_t none = 0;
    for (std::uint64_t number = 0; number < 200; ++number) {
        CAPTURE(number);
        const auto items = drawn_items(number);
        for (const std::int64_t capacity : {0, 3, 8, 17}) {
            const auto expected = least_by_trying_all(items, capacity);
            const auto found = least_cost(items, capacity);
            REQUIRE(found.has_value() == expected.has_value());
            none += found ? 0 : 1;
            if (!found) continue;
            Wide cost = 0;
            std::int64_t gpus = 0;
            for (std::size_t i = 0; i < items.size(); ++i) {
                cost += items[i][(*found)[i]].cost;
                gpus += items[i][(*found)[i]].gpus;
            }
            CHECK((cost == *expected));
            CHECK(gpus <= capacity);
        }
    }
    CHECK(none > 20);
}

TEST_CASE("a knapsack that would take minutes is refused") {
    const KnapsackItem item{{1, 1}, {1'000'000, 0}};
    CHECK_THROWS_WITH_AS((void)least_cost(std::vector<KnapsackItem>(200, item), 1'000'000),
                         "sharing 1000000 GPUs in units of 1 out to 200 jobs takes 400000400 steps, allowed are "
                         "200000000",
                         Error);
}

TEST_CASE("two jobs share four GPUs by hand") {
    // 8 tokens each. Alone a takes 8 s on 1 GPU, 4 s on 2, 3.2 s on 3; b 8 s, 6.4 s, 5.9 s; b counts twice.
    SharedCluster cluster{.gpus = 4, .loans = {}, .jobs = {}};
    cluster.jobs.push_back({"a", 1000, 8, {}, 1, {{1, 1000}, {2, 2000}, {3, 2500}}});
    cluster.jobs.push_back({"b", 2000, 8, {}, 1, {{1, 1000}, {2, 1250}, {3, 1350}}});

    // a on 3, b on 1: 3.2 + 16 = 19.2; on 2 and 2: 4 + 12.8 = 16.8; on 1 and 3: 8 + 11.85 = 19.85.
    const Shares shares = share_out(cluster);
    CHECK(shares.speed_of == std::vector<std::optional<std::size_t>>{1, 1});
    CHECK(shares.gpus == 4);
    CHECK((shares.weighted == Wide{16'800'000'000'000}));
    CHECK(shares.all_run());
}

TEST_CASE("where not all fit the least weight waits") {
    SharedCluster cluster{.gpus = 4, .loans = {}, .jobs = {}};
    cluster.jobs.push_back({"a", 1000, 8, {}, 2, {{2, 2000}}});
    cluster.jobs.push_back({"b", 2000, 8, {}, 3, {{3, 1350}}});

    const Shares shares = share_out(cluster);
    CHECK(shares.speed_of == std::vector<std::optional<std::size_t>>{std::nullopt, 0});
    CHECK(shares.smallest_gpus == 5);
    CHECK(!shares.all_run());
}

TEST_CASE("GPUs are shared out as trying every way would, on 200 random clusters") {
    std::size_t waiting = 0;
    for (std::uint64_t number = 0; number < 200; ++number) {
        CAPTURE(number);
        const SharedCluster cluster = drawn_cluster(number, {.jobs = 1 + number % 5});
        const Waits expected = share_by_trying_all(cluster.jobs, cluster.gpus);
        const Shares found = share_out(cluster);
        Wide weight = 0;
        std::int64_t gpus = 0;
        for (std::size_t j = 0; j < cluster.jobs.size(); ++j) {
            if (found.speed_of[j]) gpus += cluster.jobs[j].speeds[*found.speed_of[j]].gpus;
            if (!found.speed_of[j]) weight += cluster.jobs[j].weight_thousandths;
        }
        CHECK((weight == expected.weight));
        CHECK((found.weighted == expected.time));
        CHECK(gpus == found.gpus);
        CHECK(gpus <= cluster.gpus);
        waiting += found.all_run() ? 0 : 1;
    }
    CHECK(waiting > 20);
    CHECK(waiting < 180);
}
