#include "partition/exact_cut.hpp"

#include "partition/cut_search.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace pipeweaver::partition {

namespace {

using Counts = std::vector<std::int64_t>;

struct Taken {
    std::int64_t load = 0;
    Bytes always, held;
};

std::vector<Taken> taken_of(const Row& row, const Counts& counts) {
    std::vector<Taken> ranks(row.ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r].load = row.ranks[r].load;
    std::size_t layer = 0;
    for (std::size_t s = 0; s < counts.size(); ++s)
        for (const std::size_t end = layer + static_cast<std::size_t>(counts[s]); layer < end; ++layer) {
            Taken& rank = ranks[s % ranks.size()];
            rank.load += row.layers[layer].time;
            rank.always += row.layers[layer].always;
            rank.held += (row.passes.empty() ? 1 : row.passes[s]) * row.layers[layer].held;
        }
    return ranks;
}

ExactCut measured(const Row& row, Counts counts) {
    ExactCut cut;
    std::size_t layer = 0;
    for (const std::int64_t count : counts) {
        std::int64_t time = 0;
        for (const std::size_t end = layer + static_cast<std::size_t>(count); layer < end; ++layer)
            time += row.layers[layer].time;
        cut.longest_stage = std::max(cut.longest_stage, time);
    }
    const auto ranks = taken_of(row, counts);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        cut.largest_load = std::max(cut.largest_load, ranks[r].load);
        const Bytes over = ranks[r].always + ranks[r].held - row.ranks[r].room;
        if (over <= cut.short_by) continue;
        cut.rank = r;
        cut.short_by = over;
        cut.always = ranks[r].always;
        cut.held = ranks[r].held;
    }
    cut.counts = std::move(counts);
    return cut;
}

// Searches that end before they know, after which a limit stays as it is: each takes about a millisecond.
constexpr int most_given_up = 2;

// One limit made as small as can be, the others as they are.
class Halving {
public:
    Halving(const Row& row, CutSearch& search, CutLimits limits, std::int64_t CutLimits::*what,
            std::int64_t ExactCut::*reached)
        : row_(row), search_(search), limits_(limits), what_(what), reached_(reached) {}

    // From a cut within the limits to the best.
    ExactCut run(ExactCut best) {
        std::int64_t low = bound(best.*reached_), high = best.*reached_;
        const int most = search_.given_up() + most_given_up;
        for (std::int64_t probe = low; low < high && search_.given_up() < most; probe = std::midpoint(low, high)) {
            limits_.*what_ = probe;
            if (auto counts = search_.first_within(limits_); counts.empty()) {
                low = probe + 1;
            } else {
                best = measured(row_, std::move(counts));
                high = best.*reached_;
            }
        }
        return best;
    }

private:
    std::int64_t bound(std::int64_t high) {
        std::int64_t low = 0;
        while (low < high) {
            limits_.*what_ = std::midpoint(low, high);
            if (search_.may_meet(limits_))
                high = limits_.*what_;
            else
                low = limits_.*what_ + 1;
        }
        return low;
    }

    const Row& row_;
    CutSearch& search_;
    CutLimits limits_;
    std::int64_t CutLimits::*what_;
    std::int64_t ExactCut::*reached_;
};

// All that the row takes and is over already: with so much more on every rank anything fits.
Bytes more_than_enough(const Row& row) {
    std::int64_t passes = 1;
    for (const std::int64_t of_stage : row.passes) passes = std::max(passes, of_stage);
    Bytes all, over;
    for (const RowLayer& layer : row.layers) all += layer.always + passes * layer.held;
    for (const RowRank& rank : row.ranks) over = std::max(over, Bytes{} - rank.room);
    return all + over;
}

// The least room on top of the ranks' with which there is a cut.
Bytes least_more(const Row& row, CutSearch& search, CutLimits limits) {
    if (!search.first_within(limits).empty()) return {};
    std::int64_t low = 0, high = more_than_enough(row).count;
    const auto halve = [&](auto meets) {
        while (low < high) {
            limits.more = {std::midpoint(low, high)};
            if (meets())
                high = limits.more.count;
            else
                low = limits.more.count + 1;
        }
    };
    halve([&] { return search.may_meet(limits); });
    high = more_than_enough(row).count;
    limits.more = {low};
    if (!search.first_within(limits).empty()) return {low};
    halve([&] { return !search.first_within(limits).empty(); });
    return {low};
}

}  // namespace

ExactCut exact_cut(const Row& row) {
    [[maybe_unused]] const auto stages = row.ranks.size() * static_cast<std::size_t>(row.chunks);
    PIPEWEAVER_ASSERT(!row.ranks.empty() && row.chunks >= 1 && stages <= row.layers.size());
    PIPEWEAVER_ASSERT(row.passes.empty() || row.passes.size() == stages);
    CutSearch search(row);
    CutLimits limits;
    for (const RowLayer& layer : row.layers) limits.stage += layer.time;
    for (const RowRank& rank : row.ranks) limits.load = std::max(limits.load, rank.load + limits.stage);
    limits.more = least_more(row, search, limits);

    ExactCut best = measured(row, search.first_within(limits));
    best = Halving(row, search, limits, &CutLimits::load, &ExactCut::largest_load).run(std::move(best));
    limits.load = best.largest_load;
    best = Halving(row, search, limits, &CutLimits::stage, &ExactCut::longest_stage).run(std::move(best));
    limits.stage = best.longest_stage;
    // A search within the limits that came out, so that the order decides between its cuts.
    if (auto counts = search.first_within(limits); !counts.empty()) best = measured(row, std::move(counts));
    best.proven = search.given_up() == 0;
    return best;
}

}  // namespace pipeweaver::partition
