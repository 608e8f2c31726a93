#include "partition/rank_memory.hpp"

#include "pipeweaver/emulator/least_memory.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

namespace {

// A pass in a module, as one sequence and what it reads.
struct Positions {
    std::int64_t own = 0, context = 0;
};

PassShape as_shape(const Positions& positions) {
    if (positions.own == 0) return {};
    PassShape shape{{positions.own}};
    if (positions.context > 0) shape.context = {positions.context};
    return shape;
}

}  // namespace

RankMemory::RankMemory(const Setup& setup, const Sample& sample, std::int64_t chunks_per_rank)
    : setup_(setup),
      chunks_(chunks_per_rank),
      microbatches_((static_cast<std::int64_t>(sample.size()) + setup.layout.dp - 1) / setup.layout.dp) {
    const auto count = static_cast<std::int64_t>(sample.size());
    for (const Module& module : setup.model.modules) {
        Positions sum, most;
        for (const Microbatch& microbatch : sample) {
            const PassShape shape = shape_in(module, microbatch, 0, microbatch.items.size());
            const Positions one{shape.positions(), shape.context_positions()};
            sum = {sum.own + one.own, sum.context + one.context};
            most = {std::max(most.own, one.own), std::max(most.context, one.context)};
        }
        mean_.push_back(as_shape({(sum.own + count - 1) / count, (sum.context + count - 1) / count}));
        largest_.push_back(as_shape(most));
    }
}

std::int64_t RankMemory::in_flight(std::size_t stage) const {
    const auto ranks = setup_.layout.pp;
    const auto rank = static_cast<std::int64_t>(stage) % ranks, chunk = static_cast<std::int64_t>(stage) / ranks;
    if (chunks_ == 1) return std::min(microbatches_, ranks - rank);
    // Forwards go chunk by chunk in groups of as many microbatches as there are ranks.
    std::int64_t left = std::min(2 * (ranks - 1 - rank) + (chunks_ - 1) * ranks + 1, chunks_ * microbatches_), mine = 0;
    for (std::int64_t first = 0; first < microbatches_ && left > 0; first += ranks)
        for (std::int64_t c = 0; c < chunks_ && left > 0; ++c) {
            const std::int64_t taken = std::min({ranks, microbatches_ - first, left});
            if (c == chunk) mine += taken;
            left -= taken;
        }
    return mine;
}

std::vector<Bytes> RankMemory::least(const Chain& chain) const {
    std::vector<Bytes> all;
    for (const StaticMemory& memory : held_always(setup_, {chain})) all.push_back(memory.total());
    std::vector<Bytes> transient(all.size()), message(all.size());
    for (std::size_t s = 0; s < chain.stages.size(); ++s) {
        const std::size_t rank = index(chain.stages[s].rank);
        all[rank] += in_flight(s) * least_pass(setup_, chain.stages[s], mean_).held;
        const LeastPass largest = least_pass(setup_, chain.stages[s], largest_);
        transient[rank] = std::max(transient[rank], largest.transient);
        message[rank] = std::max(message[rank], largest.message);
    }
    constexpr std::int64_t buffers = 4;  // two in each direction
    for (std::size_t r = 0; r < all.size(); ++r) all[r] += transient[r] + buffers * message[r];
    return all;
}

Bytes RankMemory::capacity() const { return capacity_of(setup_); }

std::optional<RankShortage> RankMemory::shortage(const Chain& chain) const {
    const auto all = least(chain);
    const auto fullest = std::max_element(all.begin(), all.end());
    if (*fullest <= capacity()) return std::nullopt;
    return RankShortage{RankId{static_cast<std::uint32_t>(fullest - all.begin())}, *fullest - capacity()};
}

Bytes RankMemory::of_layers(const LayerRange& layers, std::size_t stage) const {
    const StageLayers alone{RankId{0}, {layers}};
    const StaticMemory held = held_always(setup_, {Chain{"", {alone}}}).front();
    // Workspace is for one layer of a module, however many there are.
    return held.weights + held.gradients + held.optimizer + in_flight(stage) * least_pass(setup_, alone, mean_).held;
}

namespace {

class Fill {
public:
    Fill(const RankMemory& memory, const std::vector<LayerRange>& layers, const std::vector<std::int64_t>& times,
         std::size_t stages)
        : times_(times), stages_(stages), room_(memory.ranks(), memory.capacity()) {
        for (std::size_t s = 0; s < stages; ++s) {
            auto& row = bytes_.emplace_back();
            for (const LayerRange& layer : layers) row.push_back(memory.of_layers(layer, s));
        }
    }

    // Leaves so much of a rank free from now on.
    void narrow(std::size_t rank, Bytes by) { room_[rank] = room_[rank] - by; }

    // The ends of stages that take no longer than `limit`, each rank's chunks with equal parts of the room that is left
    // to them; empty: more stages would be needed.
    std::vector<std::size_t> within(std::int64_t limit) const {
        auto room = room_;
        std::vector<std::size_t> ends;
        std::size_t i = 0;
        for (std::size_t s = 0; s < stages_; ++s) {
            const std::size_t rank = s % room.size();
            const auto chunks_left = static_cast<std::int64_t>((stages_ - s - 1) / room.size() + 1);
            const std::size_t last = times_.size() - (stages_ - s - 1), begin = i;
            std::int64_t time = 0;
            Bytes taken;
            while (i < last && time + times_[i] <= limit &&
                   chunks_left * (taken + bytes_[s][i]).count <= room[rank].count) {
                time += times_[i];
                taken += bytes_[s][i++];
            }
            if (i == begin) return {};
            room[rank] = room[rank] - taken;
            ends.push_back(i);
        }
        if (i < times_.size()) return {};
        return ends;
    }

    // With the smallest limit that halving finds.
    std::vector<std::size_t> shortest() const {
        std::int64_t low = *std::max_element(times_.begin(), times_.end());
        std::int64_t high = std::accumulate(times_.begin(), times_.end(), std::int64_t{0});
        auto best = within(high);
        while (!best.empty() && low < high) {
            const std::int64_t middle = low + (high - low) / 2;
            if (auto ends = within(middle); ends.empty()) {
                low = middle + 1;
            } else {
                best = std::move(ends);
                high = middle;
            }
        }
        return best;
    }

private:
    const std::vector<std::int64_t>& times_;
    std::size_t stages_;
    std::vector<Bytes> room_;                // per rank
    std::vector<std::vector<Bytes>> bytes_;  // per stage, per layer
};

}  // namespace

std::optional<Partition> cut_to_fit(const RankMemory& memory, const std::vector<LayerRange>& layers,
                                    const std::vector<std::int64_t>& times, std::size_t stages,
                                    const std::function<Partition(const std::vector<std::size_t>&)>& chain_of) {
    Fill fill(memory, layers, times, stages);
    // What passes take in passing, and workspace, depend on the cut: where they are too much, the next leaves them
    // free.
    constexpr int most_tries = 16;
    for (int tries = 0; tries < most_tries; ++tries) {
        const auto ends = fill.shortest();
        if (ends.empty()) return std::nullopt;
        Partition partition = chain_of(ends);
        const auto least = memory.least(partition.chains.front());
        bool fits = true;
        for (std::size_t r = 0; r < least.size(); ++r) {
            if (least[r] <= memory.capacity()) continue;
            fits = false;
            fill.narrow(r, least[r] - memory.capacity());
        }
        if (fits) return partition;
    }
    return std::nullopt;
}

}  // namespace pipeweaver::partition
