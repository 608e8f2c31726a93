#include "pipeweaver/partition/replicas.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace pipeweaver::partition {

using namespace emulator;

namespace {

constexpr std::size_t batch = 64;  // microbatches of a job: costs of a batch are remembered for it

}  // namespace

std::vector<Duration> microbatch_costs(const Setup& setup, const std::vector<workloads::Microbatch>& microbatches,
                                       const Executor& execute) {
    const auto& modules = setup.model.modules;
    StageLayers everything;
    for (std::size_t m = 0; m < modules.size(); ++m) everything.parts.push_back({m, 0, modules[m].architecture.layers});
    std::vector<Duration> all(microbatches.size());
    run_jobs(execute, (all.size() + batch - 1) / batch, [&](std::size_t job) {
        LayerCosts costs = LayerCosts::usual(setup);
        for (std::size_t i = job * batch; i < std::min(all.size(), (job + 1) * batch); ++i) {
            const auto& microbatch = microbatches[i];
            std::vector<PassShape> shapes;
            shapes.reserve(modules.size());
            for (const auto& module : modules)
                shapes.push_back(shape_in(module, microbatch, 0, microbatch.items.size()));
            all[i] = costs.stage(everything, shapes, PassKind::forward).time +
                     costs.stage(everything, shapes, PassKind::backward).time;
        }
    });
    return all;
}

Shares in_turn(std::size_t microbatches, std::size_t replicas) {
    PIPEWEAVER_ASSERT(replicas >= 1);
    Shares shares(replicas);
    for (std::size_t i = 0; i < microbatches; ++i) shares[i % replicas].push_back(i);
    return shares;
}

std::vector<Duration> loads(const Shares& shares, std::span<const Duration> costs) {
    std::vector<Duration> sums;
    for (const auto& share : shares)
        sums.push_back(std::accumulate(share.begin(), share.end(), Duration{},
                                       [&](Duration sum, std::size_t i) { return sum + costs[i]; }));
    return sums;
}

namespace {

constexpr std::size_t most_exchanges = 10'000;  // a guard; batches of some hundred microbatches need a few dozen

Duration largest(const std::vector<Duration>& sums) { return *std::max_element(sums.begin(), sums.end()); }

Shares longest_first(std::span<const Duration> costs, std::size_t replicas) {
    std::vector<std::size_t> order(costs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
    const std::size_t least = costs.size() / replicas;
    std::size_t with_one_more = costs.size() % replicas;
    Shares shares(replicas);
    std::vector<Duration> sums(replicas);
    // Those that may still take one, the least loaded first; who has lost the right is dropped when it is its turn.
    std::set<std::pair<Duration, std::size_t>> open;
    for (std::size_t r = 0; r < replicas; ++r) open.emplace(Duration{}, r);
    const auto has_room = [&](std::size_t r) {
        return shares[r].size() < least || (shares[r].size() == least && with_one_more > 0);
    };
    for (const std::size_t i : order) {
        while (!has_room(open.begin()->second)) open.erase(open.begin());
        const std::size_t to = open.extract(open.begin()).value().second;
        if (shares[to].size() == least) --with_one_more;
        shares[to].push_back(i);
        sums[to] += costs[i];
        open.emplace(sums[to], to);
    }
    return shares;
}

// What replica `from` gives away, and what it gets for it (nothing: a move).
struct Exchange {
    std::size_t to = 0, given = 0;      // replica; place in the share of `from`
    std::optional<std::size_t> taken;   // place in the share of `to`
    Duration larger = Duration::max();  // of the two loads afterwards
};

// The least loaded replicas, by number: the heaviest exchanges with these alone.
std::vector<std::size_t> least_loaded(const std::vector<Duration>& sums) {
    constexpr std::size_t most = 64;
    std::vector<std::size_t> all(sums.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (all.size() <= most) return all;
    const auto lighter = [&](std::size_t a, std::size_t b) { return std::pair(sums[a], a) < std::pair(sums[b], b); };
    std::nth_element(all.begin(), all.begin() + most, all.end(), lighter);
    all.resize(most);
    std::sort(all.begin(), all.end());
    return all;
}

// The exchange that makes the larger of the loads of `from` and one of the least loaded replicas smallest; ties go to
// the first. Pre: shares are sorted by cost.
Exchange best_exchange(const Shares& shares, const std::vector<Duration>& sums, std::span<const Duration> costs,
                       std::size_t from) {
    Exchange best;
    const auto consider = [&](std::size_t to, std::size_t given, std::optional<std::size_t> taken) {
        const Duration less = costs[shares[from][given]] - (taken ? costs[shares[to][*taken]] : Duration{});
        const Duration larger = std::max(sums[from] - less, sums[to] + less);
        if (less > Duration{} && larger < best.larger) best = {to, given, taken, larger};
    };
    for (const std::size_t to : least_loaded(sums)) {
        if (to == from) continue;
        const auto& other = shares[to];
        for (std::size_t g = 0; g < shares[from].size(); ++g) {
            if (shares[from].size() > other.size()) consider(to, g, std::nullopt);
            // Best is what makes the loads equal: the two costs on either side of that.
            const Duration wanted = costs[shares[from][g]] - (sums[from] - sums[to]) / 2;
            const auto place = std::lower_bound(other.begin(), other.end(), wanted,
                                                [&](std::size_t i, Duration cost) { return costs[i] < cost; });
            const auto t = static_cast<std::size_t>(place - other.begin());
            if (t > 0) consider(to, g, t - 1);
            if (t < other.size()) consider(to, g, t);
        }
    }
    return best;
}

// Ends where the largest load is within a ten-thousandth of the mean, too: costs are not known so well.
void exchange_while_better(Shares& shares, std::span<const Duration> costs) {
    auto sums = loads(shares, costs);
    const Duration total = std::accumulate(sums.begin(), sums.end(), Duration{});
    const auto replicas = static_cast<std::int64_t>(shares.size());
    const Duration near = total / replicas + total / replicas / 10'000;
    const auto by_cost = [&](std::size_t a, std::size_t b) {
        return std::tuple(costs[a], a) < std::tuple(costs[b], b);
    };
    for (auto& share : shares) std::sort(share.begin(), share.end(), by_cost);
    for (std::size_t n = 0; n < most_exchanges; ++n) {
        const auto from = static_cast<std::size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
        if (sums[from] <= near) return;
        const Exchange best = best_exchange(shares, sums, costs, from);
        if (best.larger >= sums[from]) return;
        auto& mine = shares[from];
        auto& other = shares[best.to];
        const Duration both = sums[from] + sums[best.to];
        if (best.taken) {
            std::swap(mine[best.given], other[*best.taken]);
        } else {
            other.push_back(mine[best.given]);
            mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(best.given));
        }
        std::sort(mine.begin(), mine.end(), by_cost);
        std::sort(other.begin(), other.end(), by_cost);
        sums[from] = loads({mine}, costs).front();
        sums[best.to] = both - sums[from];
    }
}

}  // namespace

Shares balance(std::span<const Duration> costs, std::size_t replicas) {
    PIPEWEAVER_ASSERT(replicas >= 1);
    Shares best = in_turn(costs.size(), replicas);
    if (replicas == 1) return best;
    for (Shares start : {longest_first(costs, replicas), best}) {
        exchange_while_better(start, costs);
        if (largest(loads(start, costs)) < largest(loads(best, costs))) best = std::move(start);
    }
    for (auto& share : best) std::sort(share.begin(), share.end());
    std::sort(best.begin(), best.end(),
              [](const auto& a, const auto& b) { return a.size() != b.size() ? a.size() > b.size() : a < b; });
    return best;
}

}  // namespace pipeweaver::partition
