#include "search/improve/stagger.hpp"

#include "search/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace pipeweaver::search {

namespace {

// 0 ... limit - 1; 0 for no limit.
std::int64_t below(Random& random, std::int64_t limit) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(std::max<std::int64_t>(1, limit))));
}

constexpr std::array choices{Choice::list, Choice::backward_first, Choice::dual_queue};

Choice draw_choice(Random& random) { return choices[random.below(choices.size())]; }

// Now and then nothing, else anything.
std::int64_t draw_moment(Random& random, std::int64_t horizon) {
    return random.below(2) == 0 ? 0 : below(random, horizon / 2);
}

// Up to `reach` more or less, small changes as likely as large ones.
std::int64_t shifted(std::int64_t value, std::int64_t reach, Random& random) {
    reach = std::max<std::int64_t>(1, reach >> random.below(6));
    return std::max<std::int64_t>(0, value + below(random, 2 * reach) - reach);
}

}  // namespace

StaggerSearch::StaggerSearch(const Flat& flat, const TaskGroups& groups)
    : flat_(flat),
      groups_(groups),
      dispatcher_(flat),
      gap_filling_(flat, groups),
      count_(groups.work.size(), 0),
      release_(flat.tasks()),
      line_(flat.tasks()),
      position_(flat.tasks()),
      microbatches_(groups.by_microbatch.size()) {
    for (const std::uint32_t kind : groups.kind_of) ++count_[kind];
}

std::optional<Shortage> StaggerSearch::prepare(std::span<const std::uint32_t> mode) {
    mode_.assign(mode.begin(), mode.end());
    const auto costs = flat_.costs(mode);
    gap_filling_.set_costs(costs);
    return dispatcher_.prepare(costs);
}

// At the pace of the busiest rank if it ran this kind alone, or its forwards or backwards alone; somewhat slower; or
// anything.
std::int64_t StaggerSearch::draw_distance(Random& random, std::size_t kind, std::size_t late,
                                          std::int64_t horizon) const {
    const std::int64_t most = horizon / count_[kind], own = groups_.work[kind][late];
    switch (random.below(4)) {
        case 0:
            return below(random, most);
        case 1:
            return std::min(most, own);
        case 2:
            return std::min(most, groups_.work[kind][0] + groups_.work[kind][1]);
        default:
            return std::min(most, own + own * below(random, 9) / 8);
    }
}

Staggering StaggerSearch::draw(Random& random, std::int64_t horizon) const {
    Staggering made;
    const std::size_t kinds = count_.size();
    made.choice = draw_choice(random);
    made.gaps = gap_filling_.suits() && random.below(2) == 0;
    made.before.assign(kinds, 0);
    if (random.below(4) != 0) {
        std::iota(made.before.begin(), made.before.end(), 0U);
        for (std::size_t k = kinds; k > 1; --k) std::swap(made.before[k - 1], made.before[random.below(k)]);
    }
    for (std::size_t k = 0; k < kinds; ++k) {
        Pace pace;
        pace.begin = draw_moment(random, horizon);
        pace.hold = draw_moment(random, horizon);
        for (std::size_t late = 0; late < 2; ++late) pace.distance[late] = draw_distance(random, k, late, horizon);
        made.pace.push_back(pace);
    }
    return made;
}

void StaggerSearch::change(Staggering& made, Random& random, std::int64_t horizon) const {
    const std::size_t kind = random.below(count_.size()), late = random.below(2);
    Pace& pace = made.pace[kind];
    switch (random.below(6)) {
        case 0:
            (late != 0 ? pace.hold : pace.begin) = draw_moment(random, horizon);
            break;
        case 1:
            pace.distance[late] = draw_distance(random, kind, late, horizon);
            break;
        case 2: {
            std::int64_t& moment = late != 0 ? pace.hold : pace.begin;
            moment = shifted(moment, horizon / 4, random);
            break;
        }
        case 3:
            pace.distance[late] = shifted(pace.distance[late], horizon / count_[kind] / 2, random);
            break;
        case 4:
            std::swap(made.before[kind], made.before[random.below(count_.size())]);
            break;
        default:
            made.choice = draw_choice(random);
            made.gaps = gap_filling_.suits() && random.below(2) == 0;
    }
}

void StaggerSearch::set_release(const Staggering& made) {
    std::vector<std::array<std::int64_t, 2>> next;
    for (const Pace& pace : made.pace) next.push_back({pace.begin, pace.begin + pace.hold});
    for (std::size_t m = 0; m < groups_.by_microbatch.size(); ++m) {
        const std::uint32_t kind = groups_.kind_of[m];
        for (const std::uint32_t group : groups_.by_microbatch[m])
            for (const std::uint32_t task : groups_.tasks[group])
                release_[task] = next[kind][groups_.late[group]] + flat_.head[task];
        for (std::size_t late = 0; late < 2; ++late) next[kind][late] += made.pace[kind].distance[late];
    }
}

std::int64_t StaggerSearch::fill_gaps(const Staggering& made) {
    const auto key = [&](std::uint32_t microbatch) {
        const std::uint32_t first = groups_.tasks[groups_.by_microbatch[microbatch].front()].front();
        return std::tuple(made.before[groups_.kind_of[microbatch]], release_[first], microbatch);
    };
    std::iota(microbatches_.begin(), microbatches_.end(), 0U);
    std::sort(microbatches_.begin(), microbatches_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return gap_filling_.run(microbatches_, release_) ? gap_filling_.makespan() : INT64_MAX;
}

std::int64_t StaggerSearch::evaluate(const Staggering& made) {
    set_release(made);
    made_of_gaps_ = made.gaps;
    if (made.gaps) return fill_gaps(made);
    const auto key = [&](std::uint32_t task) {
        const std::uint32_t kind = groups_.kind_of[groups_.microbatch_of[groups_.group_of[task]]];
        return std::tuple(made.before[kind], release_[task], task);
    };
    std::iota(line_.begin(), line_.end(), 0U);
    std::sort(line_.begin(), line_.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i) position_[line_[i]] = i;
    dispatcher_.run(made.choice, position_, release_);
    return dispatcher_.makespan();
}

// Most beginnings are far off: the best of a few.
void StaggerSearch::begin_anew(Random& random, std::int64_t horizon) {
    makespan_ = INT64_MAX;
    for (int k = 0; k < tuning.stagger.draws; ++k) {
        Staggering made = draw(random, horizon);
        if (k == 0) made.gaps = false;  // which may give up
        const std::int64_t makespan = evaluate(made);
        if (makespan >= makespan_) continue;
        makespan_ = makespan;
        here_ = std::move(made);
    }
    stuck_ = 0;
    patience_ = tuning.stagger.patience << random.below(2);
}

std::int64_t StaggerSearch::step(Random& random, std::int64_t horizon) {
    anew_ = makespan_ == INT64_MAX || stuck_ == patience_;
    if (anew_) {
        begin_anew(random, horizon);
        return evaluate(here_);
    }
    Staggering made = here_;
    for (std::uint64_t changes = 1 + random.below(2); changes > 0; --changes) change(made, random, horizon);
    const std::int64_t makespan = evaluate(made);
    stuck_ = makespan < makespan_ ? 0 : stuck_ + 1;
    const double allowance = -tuning.stagger.temperature * std::log(1.0 - random.uniform());
    if (static_cast<double>(makespan) <= static_cast<double>(makespan_) * (1 + allowance)) {
        makespan_ = makespan;
        here_ = std::move(made);
    }
    return makespan;
}

}  // namespace pipeweaver::search
