#include "pipeweaver/partition/kinds.hpp"

#include "partition/one_chain.hpp"
#include "partition/rank_memory.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

namespace pipeweaver::partition {

using namespace emulator;

namespace {

// Sums of what lies before each layer.
class StageSums {
public:
    explicit StageSums(const StageRow& row) : room_(row.room) {
        std::partial_sum(row.times.begin(), row.times.end(), std::back_inserter(times_));
        for (const Bytes bytes : row.bytes) bytes_.push_back(bytes_.back() + bytes);
        weighs_ = !row.bytes.empty();
    }

    double time(std::size_t begin, std::size_t end) const { return static_cast<double>(times_[end] - times_[begin]); }

    bool holds(std::size_t begin, std::size_t end) const { return !weighs_ || bytes_[end] - bytes_[begin] <= room_; }

private:
    std::vector<std::int64_t> times_{0};
    std::vector<Bytes> bytes_{Bytes{}};
    Bytes room_;
    bool weighs_ = false;
};

constexpr double no_cut_there = std::numeric_limits<double>::infinity();

// The best cut by what `join` makes of the stages before one and its time.
class StagesProgram {
public:
    explicit StagesProgram(const std::vector<StageRow>& stages)
        : sums_(stages.begin(), stages.end()), layers_(stages.front().times.size()) {}

    template <class Join>
    std::pair<double, std::vector<std::size_t>> best(double longest, Join join) const {
        std::vector<double> before(layers_ + 1, no_cut_there);
        before.front() = 0;
        std::vector<std::vector<std::size_t>> begins;
        for (const StageSums& stage : sums_) {
            std::vector<double> value(layers_ + 1, no_cut_there);
            auto& begin_of = begins.emplace_back(layers_ + 1);
            for (std::size_t begin = 0; begin < layers_; ++begin) {
                if (before[begin] == no_cut_there) continue;
                for (std::size_t end = begin + 1; end <= layers_ && stage.holds(begin, end); ++end) {
                    const double time = stage.time(begin, end);
                    if (time > longest) break;
                    const double joined = join(before[begin], time);
                    if (joined >= value[end]) continue;
                    value[end] = joined;
                    begin_of[end] = begin;
                }
            }
            before = std::move(value);
        }
        if (before[layers_] == no_cut_there) return {no_cut_there, {}};
        return {before[layers_], ends_of_stages(begins)};
    }

private:
    std::vector<std::size_t> ends_of_stages(const std::vector<std::vector<std::size_t>>& begins) const {
        std::vector<std::size_t> ends(begins.size());
        std::size_t end = layers_;
        for (std::size_t s = begins.size(); s-- > 0;) {
            ends[s] = end;
            end = begins[s][end];
        }
        return ends;
    }

    std::vector<StageSums> sums_;
    std::size_t layers_;
};

// Rows of all ranks, and what their kinds know of memory.
class KindsOfRanks {
public:
    KindsOfRanks(const RanksOfKind& first, const RanksOfKind& last, const Sample& sample)
        : setup_(*first.setup),
          layers_(layers_of(setup_.model, modules_between(0, setup_.model.modules.size()))),
          first_(static_cast<std::size_t>(first.ranks)),
          memory_{RankMemory(*first.setup, sample, 1), RankMemory(*last.setup, sample, 1)} {
        PIPEWEAVER_ASSERT(first.ranks + last.ranks == setup_.layout.pp);
        const std::vector<std::vector<std::int64_t>> times{times_of(*first.setup, sample, layers_),
                                                           times_of(*last.setup, sample, layers_)};
        for (std::size_t s = 0; s < ranks(); ++s) rows_.push_back({times[kind(s)]});
    }

    std::optional<CutForKinds> cut() {
        constexpr int most_tries = 16;
        for (int tries = 0; tries < most_tries; ++tries) {
            const auto ends = cut_by_stage(rows_);
            if (ends.empty()) return std::nullopt;
            Partition chain = one_chain(setup_, "kinds", 1, layers_, ends);
            if (fits(chain.chains.front())) return summed(std::move(chain), ends);
        }
        return std::nullopt;
    }

private:
    std::size_t ranks() const { return static_cast<std::size_t>(setup_.layout.pp); }
    std::size_t kind(std::size_t rank) const { return rank < first_ ? 0 : 1; }

    // Where it does not, ranks get less room.
    bool fits(const Chain& chain) {
        const std::vector<std::vector<Bytes>> least{memory_[0].least(chain), memory_[1].least(chain)};
        std::vector<Bytes> over(ranks());
        for (std::size_t r = 0; r < ranks(); ++r) {
            const Bytes capacity = memory_[kind(r)].capacity();
            if (least[kind(r)][r] > capacity) over[r] = least[kind(r)][r] - capacity;
        }
        if (std::all_of(over.begin(), over.end(), [](Bytes bytes) { return bytes == Bytes{}; })) return true;
        if (rows_.front().bytes.empty()) return weigh(), false;
        for (std::size_t r = 0; r < ranks(); ++r) rows_[r].room = rows_[r].room - over[r];
        return false;
    }

    void weigh() {
        for (std::size_t r = 0; r < ranks(); ++r) {
            for (const LayerRange& layer : layers_) rows_[r].bytes.push_back(memory_[kind(r)].of_layers(layer, r));
            rows_[r].room = memory_[kind(r)].capacity();
        }
    }

    CutForKinds summed(Partition chain, const std::vector<std::size_t>& ends) const {
        CutForKinds cut{std::move(chain)};
        for (std::size_t s = 0, begin = 0; s < ends.size(); begin = ends[s++]) {
            const auto from = rows_[s].times.begin();
            const auto time = std::accumulate(from + static_cast<std::ptrdiff_t>(begin),
                                              from + static_cast<std::ptrdiff_t>(ends[s]), std::int64_t{0});
            cut.longest = std::max(cut.longest, time);
            cut.all += time;
        }
        return cut;
    }

    const Setup& setup_;
    const std::vector<LayerRange> layers_;
    const std::size_t first_;
    const std::vector<RankMemory> memory_;
    std::vector<StageRow> rows_;
};

}  // namespace

std::vector<std::size_t> cut_by_stage(const std::vector<StageRow>& stages) {
    PIPEWEAVER_ASSERT(!stages.empty());
    const StagesProgram program(stages);
    const double longest =
        program.best(no_cut_there, [](double before, double time) { return std::max(before, time); }).first;
    return program.best(longest, [](double before, double time) { return before + time * time; }).second;
}

std::optional<CutForKinds> cut_for_kinds(const RanksOfKind& first, const RanksOfKind& last, const Sample& sample) {
    return KindsOfRanks(first, last, sample).cut();
}

std::vector<Partition> every_cut(const Setup& setup, std::size_t most) {
    const auto layers = layers_of(setup.model, modules_between(0, setup.model.modules.size()));
    const std::size_t stages = stages_of(setup, 1);
    std::vector<char> ends_there(layers.size() - 1, 0);  // behind each layer but the last
    if (stages > layers.size()) return {};
    std::fill(ends_there.begin(), ends_there.begin() + static_cast<std::ptrdiff_t>(stages - 1), 1);
    std::vector<Partition> all;
    do {
        if (all.size() == most) return {};
        std::vector<std::size_t> ends;
        for (std::size_t i = 0; i < ends_there.size(); ++i)
            if (ends_there[i]) ends.push_back(i + 1);
        ends.push_back(layers.size());
        all.push_back(one_chain(setup, "kinds", 1, layers, ends));
    } while (std::prev_permutation(ends_there.begin(), ends_there.end()));
    return all;
}

}  // namespace pipeweaver::partition
