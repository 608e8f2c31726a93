#include "search/improve/group_search.hpp"

#include "pipeweaver/base/assert.hpp"
#include "search/instance/modes.hpp"
#include "search/tuning.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace pipeweaver::search {

namespace {

constexpr std::int64_t spacing = tuning.group.spacing;

}  // namespace

GroupSearch::GroupSearch(const Flat& flat, const TaskGroups& groups)
    : flat_(flat),
      groups_(groups),
      pairs_(flat, groups),
      dispatcher_(flat),
      order_(groups.tasks.size()),
      position_(flat.tasks()),
      line_(flat.tasks()) {}

std::optional<Shortage> GroupSearch::prepare(std::span<const std::uint32_t> mode) {
    point_.mode.assign(mode.begin(), mode.end());
    return dispatcher_.prepare(flat_.costs(mode));
}

// Pre: its modes fit.
void GroupSearch::stand_on(const GroupPoint& point) {
    const bool same = point.mode == point_.mode;
    point_ = point;
    if (same) return;
    const auto costs = flat_.costs(point_.mode);
    // Canonical orders that other modes have left may not fit these.
    auto shortage = dispatcher_.change_costs(costs);
    if (shortage) shortage = dispatcher_.prepare(costs);
    PIPEWEAVER_ASSERT(!shortage);
    static_cast<void>(shortage);
}

void GroupSearch::take(const GroupPoint& point) {
    stand_on(point);
    makespan_ = INT64_MAX;
}

void GroupSearch::follow(const GroupSearch& other) {
    stand_on(other.point_);
    makespan_ = other.makespan_;
}

bool GroupSearch::start(Choice choice, std::span<const std::uint32_t> place, std::span<const std::uint32_t> mode) {
    old_ = point_;
    point_.mode.assign(mode.begin(), mode.end());
    if (dispatcher_.change_costs(flat_.costs(mode))) {
        stand_on(old_);
        return false;
    }
    start(choice, place);
    return true;
}

void GroupSearch::start(Choice choice, std::span<const std::uint32_t> place) {
    point_.choice = choice;
    std::vector<std::uint32_t> first(groups_.tasks.size(), UINT32_MAX);
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i)
        first[groups_.group_of[i]] = std::min(first[groups_.group_of[i]], place[i]);
    const auto rank = keys_by(static_cast<std::uint32_t>(first.size()),
                              [&](std::uint32_t a, std::uint32_t b) { return first[a] < first[b]; });
    point_.key.clear();
    for (const std::uint32_t r : rank) point_.key.push_back(spacing * r);
    makespan_ = INT64_MAX;
}

std::int64_t GroupSearch::evaluate() {
    std::iota(order_.begin(), order_.end(), 0U);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(point_.key[a], a) < std::pair(point_.key[b], b);
    });
    std::uint32_t next = 0;
    for (const std::uint32_t group : order_)
        for (const std::uint32_t task : groups_.tasks[group]) position_[task] = next++;
    if (point_.choice == Choice::in_order) {
        next = 0;
        for (const std::uint32_t task : sorted_by_key(flat_.before, flat_.after, position_)) line_[next++] = task;
        for (std::uint32_t i = 0; i < next; ++i) position_[line_[i]] = i;
    }
    dispatcher_.run(point_.choice, position_);
    made_under_ = point_.mode;
    return dispatcher_.makespan();
}

// All microbatches of a kind, or their forwards or backwards alone.
void GroupSearch::shift_kind(std::int64_t by, Random& random) {
    const auto kind = random.below(groups_.work.size());
    const auto part = random.below(3);
    for (std::size_t group = 0; group < point_.key.size(); ++group)
        if (groups_.kind_of[groups_.microbatch_of[group]] == kind && (part == 2 || groups_.late[group] == part))
            point_.key[group] += by;
}

void GroupSearch::change_keys(Random& random) {
    const auto groups = point_.key.size();
    const std::uint64_t whole = groups * spacing;
    const auto halvings = static_cast<std::uint64_t>(std::bit_width(groups));
    const auto reach = std::max<std::uint64_t>(2 * spacing, whole >> random.below(halvings));
    const std::int64_t by = static_cast<std::int64_t>(random.below(2 * reach)) - static_cast<std::int64_t>(reach);
    const auto& of_one = groups_.by_microbatch[random.below(groups_.by_microbatch.size())];
    switch (random.below(groups_.work.size() > 1 ? 4 : 3)) {
        case 3:
            shift_kind(by, random);
            break;
        case 0:
            point_.key[random.below(groups)] += by;
            break;
        case 1:
            for (const std::uint32_t group : of_one) point_.key[group] += by;
            break;
        default: {
            const auto& of_other = groups_.by_microbatch[random.below(groups_.by_microbatch.size())];
            // Text-only microbatches have fewer groups: the last ones, the language model's, change places.
            const std::size_t common = std::min(of_one.size(), of_other.size());
            for (std::size_t k = 1; k <= common; ++k)
                std::swap(point_.key[of_one[of_one.size() - k]], point_.key[of_other[of_other.size() - k]]);
        }
    }
}

// False if there is nothing to change, or nothing would change.
bool GroupSearch::change_modes(Random& random) {
    const auto& sets = random.below(2) == 0 ? pairs_.of_module : pairs_.of_item;
    if (sets.size() == 0) return false;
    const auto set = sets[random.below(sets.size())];
    const auto& all = flat_.problem().pairs;
    const auto to = static_cast<std::uint32_t>(random.below(all[set.front()].modes.size()));
    bool any = false;
    for (const std::uint32_t pair : set) {
        const std::uint32_t before = std::exchange(point_.mode[pair], mode_of(all[pair], to));
        any = any || before != point_.mode[pair];
    }
    return any;
}

std::int64_t GroupSearch::step(Random& random) {
    old_ = point_;
    const bool modes = random.below(100) < tuning.group.mode_percent && change_modes(random);
    if (modes && dispatcher_.change_costs(flat_.costs(point_.mode))) {
        stand_on(old_);
        return INT64_MAX;
    }
    if (!modes || random.below(2) == 0) change_keys(random);
    const std::int64_t now = evaluate();
    if (now <= makespan_)
        makespan_ = now;
    else
        stand_on(old_);
    return now;
}

}  // namespace pipeweaver::search
