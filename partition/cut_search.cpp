#include "partition/cut_search.hpp"

#include <algorithm>
#include <cstdlib>

namespace pipeweaver::partition {

CutSearch::CutSearch(const Row& row)
    : row_(row),
      stages_(row.ranks.size() * static_cast<std::size_t>(row.chunks)),
      most_states_(row.chunks == 1 ? stages_ * row.layers.size() : most_states),
      before_(row.layers.size() + 1),
      least_(row.layers.size()),
      fixed_(stages_),
      light_(row.ranks.size()),
      most_in_stage_(stages_) {
    for (std::size_t i = 0; i < layers(); ++i) before_[i + 1] = before_[i] + row.layers[i].time;
    if (layers() > 1) least_[layers() - 2] = row.layers[layers() - 2];
    for (std::size_t i = layers() - 1; i-- > 1;) {
        const RowLayer &one = row.layers[i - 1], &after = least_[i];
        least_[i - 1] = {std::min(one.time, after.time), std::min(one.always, after.always),
                         std::min(one.held, after.held)};
    }
    fixed_.front().push_back(0);
    if (layers() > 1) fixed_.back().push_back(layers() - 1);
    for (std::size_t s = 0; s < stages_; ++s) light_[s % row.ranks.size()].push_back(s);
    for (auto& own : light_)
        std::stable_sort(own.begin(), own.end(), [&](std::size_t a, std::size_t b) { return passes(a) < passes(b); });
}

void CutSearch::begin(const CutLimits& limits) {
    limits_ = limits;
    left_.clear();
    for (const RowRank& rank : row_.ranks)
        left_.push_back({limits.load - rank.load, rank.room.count + limits.more.count});
    counts_.assign(stages_, 0);
    failed_.clear();
    states_ = 0;
}

std::vector<std::int64_t> CutSearch::first_within(const CutLimits& limits) {
    if (may_meet(limits) && place(0, 0)) return counts_;
    if (states_ > most_states_) ++given_up_;
    return {};
}

bool CutSearch::may_meet(const CutLimits& limits) {
    begin(limits);
    return may_fit(0, 0);
}

// Whether the layers from `first` on can be cut into the stages from `stage` on.
bool CutSearch::place(std::size_t stage, std::size_t first) {
    if (stage == stages_) return true;
    auto now = state(stage, first);
    if (failed_.contains(now)) return false;
    if (++states_ > most_states_) return false;
    Left& left = left_[stage % left_.size()];
    const Left whole = left;
    for (const std::size_t end : ends_for(stage, first)) {
        left = whole;
        for (std::size_t i = first; i < end; ++i) left.bytes -= bytes_of(row_.layers[i], stage);
        left.time -= before_[end] - before_[first];
        counts_[stage] = static_cast<std::int64_t>(end - first);
        if (may_fit(stage + 1, end) && place(stage + 1, end)) return true;
    }
    left = whole;
    failed_.insert(std::move(now));
    return false;
}

// What decides whether the rest can be cut. Of ranks that have none of it yet everything is left.
std::vector<std::int64_t> CutSearch::state(std::size_t stage, std::size_t first) const {
    std::vector<std::int64_t> all{static_cast<std::int64_t>(stage), static_cast<std::int64_t>(first)};
    for (std::size_t r = 0; r < std::min(left_.size(), stage); ++r)
        if (last_stage_of(r) >= stage) all.insert(all.end(), {left_[r].time, left_[r].bytes});
    return all;
}

// Where the stage may end, the nearest to its even part of the time first.
std::vector<std::size_t> CutSearch::ends_for(std::size_t stage, std::size_t first) const {
    const Left& left = left_[stage % left_.size()];
    const std::size_t after = stages_ - stage - 1;
    std::vector<std::size_t> ends;
    std::int64_t bytes = 0;
    for (std::size_t end = first + 1; end + after <= layers(); ++end) {
        const std::int64_t time = before_[end] - before_[first];
        bytes += bytes_of(row_.layers[end - 1], stage);
        if (time > std::min(limits_.stage, left.time) || bytes > left.bytes) break;
        if (after > 0 || end == layers()) ends.push_back(end);
    }
    const auto off = [&](std::size_t end) {
        return std::abs(before_[end] * static_cast<std::int64_t>(stages_) -
                        before_.back() * static_cast<std::int64_t>(stage + 1));
    };
    std::sort(ends.begin(), ends.end(),
              [&](std::size_t a, std::size_t b) { return off(a) != off(b) ? off(a) < off(b) : a > b; });
    return ends;
}

// Whether the layers from `first` on go into the stages from `stage` on by time, and by count if all but the row's
// first and last were as light as the lightest.
bool CutSearch::may_fit(std::size_t stage, std::size_t first) {
    if (stage == stages_) return true;
    auto between = static_cast<std::int64_t>(layers() - first);
    if (layers() > 1) --between;
    if (first == 0) --between;
    std::int64_t time = before_.back() - before_[first];
    for (std::size_t r = 0; r < left_.size(); ++r) {
        if (last_stage_of(r) < stage) continue;
        const std::int64_t most = most_on(r, stage, first);
        if (most < 0) return false;
        between -= most;
        time -= std::min(left_[r].time, time);
    }
    return between <= 0 && time <= 0;
}

// How often `each` goes into `whole`; below 0: `whole` is.
std::int64_t CutSearch::most_in(std::int64_t whole, std::int64_t each) const {
    const auto most = static_cast<std::int64_t>(layers());
    if (whole < 0) return -1;
    return each > 0 ? std::min(most, whole / each) : most;
}

// The most layers between the row's first and last that the rank's stages from `stage` on can have; below 0: they
// cannot have what they must.
std::int64_t CutSearch::most_on(std::size_t rank, std::size_t stage, std::size_t first) {
    const std::size_t lightest = std::max<std::size_t>(first, 1);
    const bool any = lightest + 1 < layers();
    const RowLayer each = any ? least_[lightest] : RowLayer{};
    auto [time, bytes] = left_[rank];
    std::int64_t in_stages = 0, needed = 0;
    for (const std::size_t s : light_[rank]) {
        if (s < stage) continue;
        std::int64_t own = limits_.stage;
        const bool must = fixed_[s].empty();
        for (const std::size_t layer : fixed_[s]) {
            if (layer < first) continue;
            own -= row_.layers[layer].time;
            time -= row_.layers[layer].time;
            bytes -= bytes_of(row_.layers[layer], s);
        }
        most_in_stage_[s] = most_in(own, each.time);
        if (most_in_stage_[s] < (must ? 1 : 0)) return -1;
        in_stages += most_in_stage_[s];
        needed += must ? 1 : 0;
        if (must) bytes -= bytes_of(each, s);
    }
    if (bytes < 0) return -1;
    std::int64_t in_bytes = needed;  // the cheapest stages are filled first
    for (const std::size_t s : light_[rank]) {
        if (s < stage) continue;
        const std::int64_t more =
            std::min(most_in_stage_[s] - (fixed_[s].empty() ? 1 : 0), most_in(bytes, bytes_of(each, s)));
        in_bytes += more;
        bytes -= more * bytes_of(each, s);
    }
    const std::int64_t most = std::min({in_stages, most_in(time, each.time), in_bytes});
    return most < needed ? -1 : most;
}

}  // namespace pipeweaver::partition
