// What is enough, and how cores are shared out: against trying everything.
#include "pipeweaver/loader/advice.hpp"

#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

using namespace pipeweaver;
using namespace pipeweaver::loader;

namespace {

using namespace std::chrono_literals;

std::vector<Replica> drawn_replicas(Random& random) {
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
    const std::int64_t each = 1 + below(4);
    std::vector<Replica> replicas(static_cast<std::size_t>(1 + below(2)));
    for (Replica& replica : replicas) {
        for (int step = 0; step < 8; ++step) {
            auto& times = replica.steps.emplace_back();
            for (std::int64_t m = 0; m < each; ++m) {
                times.emplace_back(20 + below(10));
                Pack& pack = replica.packs.emplace_back();
                pack.samples = 1 + below(3);
                for (std::int64_t k = 1 + below(4); k > 0; --k)
                    pack.pieces.push_back({Duration{1 + below(40)}, below(2) == 0});
            }
        }
    }
    return replicas;
}

ReplicasFor always(const std::vector<Replica>& replicas) {
    return [replicas](std::int64_t) { return replicas; };
}

// Whether workers, cores and copies of each replica have time enough in all steps, whose replicas wait for each other.
bool has_time(const Queue& queue, const Taking& taking, const std::vector<Replica>& replicas) {
    std::int64_t steps = 0;
    for (std::size_t n = 0; n < replicas[0].steps.size(); ++n) {
        std::int64_t longest = 0, sum_of_longest = 0;
        for (std::size_t m = 0; m < replicas[0].steps[n].size(); ++m) {
            std::int64_t most = 0;
            for (const Replica& one : replicas) most = std::max(most, one.steps[n][m].count());
            sum_of_longest += most;
        }
        for (const Replica& one : replicas) {
            std::int64_t sum = 0;
            for (const Duration time : one.steps[n]) sum += time.count();
            longest = std::max(longest, sum);
        }
        steps += taking.microbatches_together ? sum_of_longest : longest;
    }
    return std::all_of(replicas.begin(), replicas.end(), [&](const Replica& one) {
        std::int64_t all = 0, on_cores = 0, copies = 0;
        for (const Pack& pack : one.packs) {
            copies += pack.copy.count();
            for (const Piece& piece : pack.pieces) {
                all += piece.time.count();
                on_cores += piece.core ? piece.time.count() : 0;
            }
        }
        return copies <= steps && all <= queue.workers * steps && (!queue.cores || on_cores <= *queue.cores * steps);
    });
}

bool feeds(const Queue& queue, const Taking& taking, const std::vector<Replica>& replicas) {
    if (!has_time(queue, taking, replicas)) return false;
    const auto steps = replay(queue, taking, replicas);
    Duration waited{};
    for (std::size_t n = steps.size() / 2; n < steps.size(); ++n)
        for (const Duration time : steps[n].waited) waited += time;
    return waited == 0ns;
}

// The first queue by workers, then prefetch, that feeds, and of its cores as few as can go, one by one.
std::optional<Queue> by_trying(const Queue& asked, const Taking& taking, const std::vector<Replica>& replicas) {
    for (Queue tried{.workers = 1, .window = asked.window}; tried.workers <= 64; ++tried.workers)
        for (tried.prefetch = 1; tried.prefetch <= 16; ++tried.prefetch) {
            tried.cores.reset();
            if (!feeds(tried, taking, replicas)) continue;
            std::vector<bool> enough(static_cast<std::size_t>(tried.workers) + 1);
            for (std::int64_t cores = 1; cores <= tried.workers; ++cores) {
                tried.cores = cores;
                enough[static_cast<std::size_t>(cores)] = feeds(tried, taking, replicas);
            }
            while (*tried.cores > 1 && enough[static_cast<std::size_t>(*tried.cores - 1)]) --*tried.cores;
            return tried;
        }
    return std::nullopt;
}

// The least that the slowest of the stages can take, as time over cores: (load, cores).
std::pair<Duration, std::int64_t> least_slowest(const std::vector<Duration>& loads, std::int64_t cores) {
    std::pair<Duration, std::int64_t> best{Duration::max(), 1};
    const auto above = [](const auto& a, const auto& b) {
        return a.first.count() * b.second > b.first.count() * a.second;
    };
    const std::function<void(std::size_t, std::int64_t, std::pair<Duration, std::int64_t>)> give =
        [&](std::size_t stage, std::int64_t left, std::pair<Duration, std::int64_t> slowest) {
            if (stage == loads.size()) {
                if (best.first == Duration::max() || above(best, slowest)) best = slowest;
                return;
            }
            for (std::int64_t mine = 1; mine <= left; ++mine) {
                const std::pair one{loads[stage], mine};
                give(stage + 1, left - mine, above(one, slowest) ? one : slowest);
            }
        };
    give(0, cores, {0ns, 1});
    return best;
}

}  // namespace

TEST_CASE("a pack of 50 ns for GPUs that take 20 needs three workers") {
    Replica replica;
    replica.steps.assign(8, StepTimes(4, 20ns));
    replica.packs.assign(32, Pack{{{30ns, true}, {20ns, false}}, {}, 1});
    // On a core for 30 of 50 ns, two cores make a pack each 15 ns.
    CHECK(enough({}, {}, always({replica})) == Queue{.workers = 3, .prefetch = 1, .cores = 2});
    for (Pack& pack : replica.packs) pack.pieces[0].time = 2'000ns;
    CHECK(!enough({}, {}, always({replica})));
}

TEST_CASE("copies come after the workers, one at a time, and no queue makes up for slow ones") {
    Replica replica;
    replica.steps.assign(8, StepTimes(4, 20ns));
    replica.packs.assign(32, Pack{{{50ns, true}}, 15ns, 1});
    // With one pack ahead each of three workers begins 60 ns before its pack is needed, which is there after 65.
    CHECK(enough({}, {}, always({replica})) == Queue{.workers = 3, .prefetch = 2, .cores = 3});
    for (Pack& pack : replica.packs) pack.copy = 21ns;
    CHECK(!enough({}, {}, always({replica})));
}

TEST_CASE("what is advised is the first that feeds of all that there are") {
    std::size_t several = 0, fewer_cores = 0, ahead = 0;
    for (std::uint64_t number = 0; number < 60; ++number) {
        CAPTURE(number);
        Random random(2, number);
        const Taking taking{.whole_step = random.below(2) == 0, .microbatches_together = random.below(2) == 0};
        Queue queue;
        if (random.below(4) == 0) queue.window = 4;
        const auto replicas = drawn_replicas(random);
        const auto found = enough(queue, taking, always(replicas));
        REQUIRE(found == by_trying(queue, taking, replicas));
        if (!found) continue;
        several += found->workers > 1;
        ahead += found->prefetch > 1;
        fewer_cores += found->cores < found->workers;
    }
    CHECK(several > 10);
    CHECK(ahead > 10);
    CHECK(fewer_cores > 10);
}

TEST_CASE("cores go to stages so that no allocation has a faster slowest stage") {
    CHECK(share_cores(std::vector<Duration>{30ns, 10ns, 0ns}, 4) == std::vector<std::int64_t>{3, 1, 0});
    CHECK(share_cores(std::vector<Duration>{10ns, 10ns}, 3) == std::vector<std::int64_t>{2, 1});
    CHECK(!share_cores(std::vector<Duration>{1ns, 1ns, 1ns}, 2));
    for (std::uint64_t number = 0; number < 300; ++number) {
        CAPTURE(number);
        Random random(3, number);
        std::vector<Duration> loads;
        for (std::uint64_t k = 1 + random.below(4); k > 0; --k)
            loads.emplace_back(1 + static_cast<std::int64_t>(random.below(100)));
        const auto cores = static_cast<std::int64_t>(loads.size() + random.below(8));
        const auto shared = share_cores(loads, cores);
        REQUIRE(shared);
        const auto best = least_slowest(loads, cores);
        std::int64_t sum = 0;
        for (std::size_t s = 0; s < loads.size(); ++s) {
            sum += (*shared)[s];
            CHECK(loads[s].count() * best.second <= best.first.count() * (*shared)[s]);
        }
        CHECK(sum == cores);
    }
}
