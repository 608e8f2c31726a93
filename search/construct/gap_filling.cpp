#include "search/construct/gap_filling.hpp"

#include "search/tuning.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::search {

GapFilling::GapFilling(const Flat& flat, const TaskGroups& groups)
    : flat_(flat),
      topological_place_(flat.tasks()),
      tasks_(groups.by_microbatch.size()),
      ranks_(groups.by_microbatch.size()),
      microbatch_of_(flat.tasks()),
      row_(flat.ranks()),
      end_(flat.tasks()) {
    suits_ = flat.tasks() <= tuning.gap.most_tasks;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        const std::uint32_t task = flat.topological[i];
        topological_place_[task] = i;
        microbatch_of_[task] = groups.microbatch_of[groups.group_of[task]];
        tasks_[microbatch_of_[task]].push_back(task);
        ranks_[microbatch_of_[task]].push_back(flat.rank_of[task]);
        for (const Arc& arc : flat.before[task]) suits_ = suits_ && microbatch_of_[arc.task] == microbatch_of_[task];
    }
    for (auto& ranks : ranks_) {
        std::sort(ranks.begin(), ranks.end());
        ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    }
}

// Into the first gap that is long enough.
void GapFilling::insert(std::uint32_t task) {
    const std::uint32_t rank = flat_.rank_of[task];
    std::int64_t from = std::max(not_before_[task], flat_.rank_begin[rank]);
    for (const Arc& arc : flat_.before[task]) from = std::max(from, end_[arc.task] + arc.lag_ns);
    auto& row = row_[rank];
    auto next = std::partition_point(row.begin(), row.end(), [&](const Busy& busy) { return busy.end <= from; });
    for (; next != row.end() && next->begin < from + costs_[task].duration; ++next) from = std::max(from, next->end);
    end_[task] = from + costs_[task].duration;
    row.insert(next, {from, end_[task], task});
}

void GapFilling::remove(std::uint32_t microbatch) {
    for (const std::uint32_t rank : ranks_[microbatch])
        std::erase_if(row_[rank], [&](const Busy& busy) { return microbatch_of_[busy.task] == microbatch; });
}

// Along the rank's order, to the first place where memory does not fit.
GapFilling::Fit GapFilling::fit(std::uint32_t microbatch, std::uint32_t rank) {
    std::int64_t used = 0;
    std::uint32_t taker = UINT32_MAX;
    for (const Busy& busy : row_[rank]) {
        const Cost& cost = costs_[busy.task];
        if (microbatch_of_[busy.task] == microbatch && cost.acquire > 0) taker = busy.task;
        used += cost.acquire;
        if (used > flat_.room[rank]) return put_off(taker) ? Fit::put_off : Fit::never;
        used -= cost.release;
        if (used < 0) return Fit::never;
    }
    return Fit::fits;
}

// Until the next task of another microbatch gives memory back on its rank.
bool GapFilling::put_off(std::uint32_t taker) {
    if (taker == UINT32_MAX) return false;
    const std::int64_t began = end_[taker] - costs_[taker].duration;
    for (const Busy& busy : row_[flat_.rank_of[taker]]) {
        if (busy.end <= began || costs_[busy.task].release == 0) continue;
        if (microbatch_of_[busy.task] == microbatch_of_[taker]) continue;
        not_before_[taker] = busy.end;
        return true;
    }
    return false;
}

bool GapFilling::place(std::uint32_t microbatch) {
    for (; attempts_left_ > 0; --attempts_left_) {
        for (const std::uint32_t task : tasks_[microbatch]) insert(task);
        bool fits = true;
        for (const std::uint32_t rank : ranks_[microbatch]) {
            const Fit found = fit(microbatch, rank);
            if (found == Fit::never) return false;
            fits = fits && found == Fit::fits;
        }
        if (fits) return true;
        remove(microbatch);
    }
    return false;
}

bool GapFilling::run(std::span<const std::uint32_t> microbatches, std::span<const std::int64_t> release) {
    not_before_.assign(release.begin(), release.end());
    for (auto& row : row_) row.clear();
    attempts_left_ = tuning.gap.attempts * microbatches.size();
    for (const std::uint32_t microbatch : microbatches)
        if (!place(microbatch)) return false;
    sequence_.clear();
    makespan_ = 0;
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i) {
        sequence_.push_back(i);
        makespan_ = std::max(makespan_, end_[i] + flat_.rank_tail[flat_.rank_of[i]]);
    }
    const auto key = [&](std::uint32_t task) {
        return std::pair(end_[task] - costs_[task].duration, topological_place_[task]);
    };
    std::sort(sequence_.begin(), sequence_.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return true;
}

}  // namespace pipeweaver::search
