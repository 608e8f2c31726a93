#include "pipeweaver/groups/allocation.hpp"

#include "groups/timetable.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace pipeweaver::groups {

namespace {

// No stage of the choice ends sooner, from its group's first forward to its group's last backward.
Duration least_of(const Choice& choice) {
    Duration before{}, least{};
    for (const Stage& stage : choice.stages) {
        const Duration forward = std::accumulate(stage.forward.begin(), stage.forward.end(), Duration{});
        const Duration backward = std::accumulate(stage.backward.begin(), stage.backward.end(), Duration{});
        least = std::max(least, before + forward + backward);
        before += stage.forward.front() + stage.backward.back() + 2 * choice.hop;
    }
    return least;
}

// What the groups behind wait for its first forward, and it for their last backward, at least.
Duration fill_of(const Choice& choice) {
    Duration fill = 2 * static_cast<std::int64_t>(choice.stages.size() - 1) * choice.hop + 2 * choice.bridge;
    for (const Stage& stage : choice.stages) fill += stage.forward.front() + stage.backward.back();
    return fill;
}

bool is_as_fast(const Stage& a, const Stage& b, std::int64_t rounds) {
    if (std::min(a.most_in_flight, rounds) != std::min(b.most_in_flight, rounds)) return false;
    for (std::size_t r = 0; r < a.forward.size(); ++r)
        if (a.forward[r] > b.forward[r] || a.backward[r] > b.backward[r]) return false;
    return true;
}

// Whether no step with `b` is shorter than the same with `a`: with equal orders a step only grows with what is in it.
bool dominates(const Choice& a, const Choice& b, std::int64_t rounds) {
    if (a.gpus > b.gpus || a.stages.size() != b.stages.size()) return false;
    if (a.hop > b.hop || a.bridge > b.bridge || a.tail > b.tail) return false;
    for (std::size_t s = 0; s < a.stages.size(); ++s)
        if (!is_as_fast(a.stages[s], b.stages[s], rounds)) return false;
    return true;
}

// Of what a group may have, all that is needed to bound a step.
struct Known {
    std::size_t index = 0;
    std::int64_t gpus = 0;
    Duration least{}, fill{}, tail{};
};

std::vector<Known> worth_trying(const Group& group, const Split& split) {
    std::vector<Known> kept;
    for (std::size_t c = 0; c < group.choices.size(); ++c) {
        const Choice& choice = group.choices[c];
        const auto beaten = [&](const Known& by) { return dominates(group.choices[by.index], choice, split.rounds); };
        if (choice.gpus > split.gpus || std::any_of(kept.begin(), kept.end(), beaten)) continue;
        kept.push_back({c, choice.gpus, least_of(choice), fill_of(choice), choice.tail});
    }
    std::stable_sort(kept.begin(), kept.end(), [](const Known& a, const Known& b) { return a.least < b.least; });
    return kept;
}

class Search {
public:
    Search(const Split& split, std::optional<Duration> below) : split_(split), below_(below) {
        for (const Group& group : split.groups) known_.push_back(worth_trying(group, split));
        least_.resize(known_.size());
    }

    std::optional<Allocation> run() {
        if (std::any_of(known_.begin(), known_.end(), [](const auto& all) { return all.empty(); })) return {};
        for (std::size_t g = 0; g < known_.size(); ++g) least_[g] = least_of_all(known_[g]);
        now_ = least_;
        descend(0, 0);
        return best_;
    }

private:
    static Known least_of_all(const std::vector<Known>& all) {
        Known least = all.front();
        for (const Known& one : all) {
            least.gpus = std::min(least.gpus, one.gpus);
            least.least = std::min(least.least, one.least);
            least.fill = std::min(least.fill, one.fill);
            least.tail = std::min(least.tail, one.tail);
        }
        return least;
    }

    // Of a step with what is chosen now, and with the least of what is not.
    Duration bound() const {
        Duration bound{}, tail = Duration::max();
        std::vector<Duration> before(now_.size());
        for (std::size_t g = 0; g < now_.size(); ++g) {
            for (const Bridge& bridge : split_.bridges)
                if (bridge.to == g) before[g] = std::max(before[g], before[bridge.from] + now_[bridge.from].fill);
            bound = std::max(bound, before[g] + now_[g].least);
            tail = std::min(tail, now_[g].tail);
        }
        return bound + tail;
    }

    bool is_hopeless(std::int64_t gpus) const {
        const Duration least = bound();
        if (best_) return least > best_->step || (least == best_->step && gpus > best_->gpus);
        return below_ && least > *below_;
    }

    std::int64_t gpus_of_rest(std::size_t group) const {
        std::int64_t gpus = 0;
        for (std::size_t g = group; g < known_.size(); ++g) gpus += least_[g].gpus;
        return gpus;
    }

    void descend(std::size_t group, std::int64_t gpus) {
        if (group == known_.size()) return take(gpus);
        const std::int64_t rest = gpus_of_rest(group + 1);
        for (const Known& one : known_[group]) {
            if (gpus + one.gpus + rest > split_.gpus) continue;
            now_[group] = one;
            if (!is_hopeless(gpus + one.gpus + rest)) descend(group + 1, gpus + one.gpus);
        }
        now_[group] = least_[group];
    }

    void take(std::int64_t gpus) {
        Allocation made;
        made.gpus = gpus;
        for (const Known& one : now_) made.taken.push_back(one.index);
        const Timetable timetable(split_, made.taken, best_ ? std::optional(best_->step) : below_);
        if (timetable.is_longer()) return;
        made.step = timetable.step();
        const auto key = [](const Allocation& a) { return std::tie(a.step, a.gpus, a.taken); };
        if (!best_ || key(made) < key(*best_)) best_ = std::move(made);
    }

    const Split& split_;
    std::optional<Duration> below_;
    std::vector<std::vector<Known>> known_;  // per group, the least work of a stage first
    std::vector<Known> least_;               // per group, of each figure
    std::vector<Known> now_;
    std::optional<Allocation> best_;
};

}  // namespace

std::optional<Allocation> allocate(const Split& split, std::optional<Duration> below) {
    return Search(split, below).run();
}

Replayed replay(const Split& split, std::span<const std::size_t> taken) { return Timetable(split, taken).replayed(); }

}  // namespace pipeweaver::groups
