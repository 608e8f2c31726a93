#include "search/instance/flat_replay.hpp"

#include <algorithm>
#include <bit>

namespace pipeweaver::search {

// The sum of all tasks' ends stays below 2^62 in units of 2^shift: no end exceeds the sum of all durations and lags.
unsigned end_shift(const Flat& flat) {
    std::uint64_t horizon = 1;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        std::int64_t longest = 0;
        for (std::uint32_t m = 0; m < flat.modes(i); ++m) longest = std::max(longest, flat.cost(i, m).duration);
        horizon += static_cast<std::uint64_t>(longest);
        for (const Arc& arc : flat.before[i]) horizon += static_cast<std::uint64_t>(arc.lag_ns);
    }
    const int bits = static_cast<int>(std::bit_width(horizon)) + static_cast<int>(std::bit_width(flat.tasks()));
    return bits > 62 ? static_cast<unsigned>(bits - 62) : 0;
}

FlatReplay::FlatReplay(const Flat& flat)
    : flat_(flat),
      shift_(end_shift(flat)),
      mode_(flat.problem().pairs.size(), 0),
      cost_(flat.costs(mode_)),
      end_(flat.tasks()),
      rank_(flat.ranks()) {}

void FlatReplay::set_modes(std::span<const std::uint32_t> mode) {
    if (std::equal(mode_.begin(), mode_.end(), mode.begin(), mode.end())) return;
    for (std::uint32_t k = 0; k < mode_.size(); ++k) {
        if (mode_[k] == mode[k]) continue;
        mode_[k] = mode[k];
        for (const std::uint32_t task : tasks_of(flat_.problem().pairs[k])) cost_[task] = flat_.cost(task, mode[k]);
    }
}

const Energy& FlatReplay::replay(std::span<const std::uint32_t> sequence, std::span<const std::uint32_t> mode) {
    set_modes(mode);
    std::fill(rank_.begin(), rank_.end(), Rank{});
    std::int64_t* const end = end_.data();
    std::int64_t sum = 0, latest = 0;
    for (const std::uint32_t task : sequence) {
        Rank& rank = rank_[flat_.rank_of[task]];
        const Cost& cost = cost_[task];
        std::int64_t start = rank.clock;
        for (const Arc& arc : flat_.cross_before[task]) start = std::max(start, end[arc.task] + arc.lag_ns);
        rank.clock = end[task] = start + cost.duration;
        sum += rank.clock >> shift_;
        const std::int64_t level = rank.level + cost.acquire;
        rank.level = level - cost.release;
        if (level > rank.peak) rank.peak = level;
    }
    for (std::uint32_t r = 0; r < flat_.ranks(); ++r)
        if (rank_[r].clock > 0) latest = std::max(latest, rank_[r].clock + flat_.rank_tail[r]);
    energy_ = {latest, sum};
    return energy_;
}

}  // namespace pipeweaver::search
