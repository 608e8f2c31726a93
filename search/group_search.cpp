#include "search/group_search.hpp"

#include "search/priorities.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

namespace pipeweaver::search {

namespace {

constexpr std::int64_t spacing = 1024;  // between the keys of neighbours at the start

}  // namespace

TaskGroups::TaskGroups(const Flat& flat) : group_of(flat.tasks()), segment_of(segments_of(flat)) {
    const auto& all = flat.problem().tasks;
    const auto component = components_of(flat);
    using Key = std::tuple<std::uint32_t, std::int64_t, std::string_view, std::int64_t, std::uint32_t, std::uint8_t>;
    std::map<Key, std::uint32_t> number;
    std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> microbatch;
    std::map<std::string_view, std::uint32_t> kind;
    std::vector<std::vector<std::uint32_t>> members;
    for (const std::uint32_t i : flat.reading) {
        const std::pair owner(component[i], all[i].microbatch.value_or(-1));
        const Key key{owner.first, owner.second, all[i].module, all[i].item.value_or(-1), segment_of[i], flat.late[i]};
        const auto [group, fresh] = number.try_emplace(key, static_cast<std::uint32_t>(members.size()));
        if (fresh) {
            members.emplace_back();
            const auto row = microbatch.try_emplace(owner, static_cast<std::uint32_t>(by_microbatch.size())).first;
            if (row->second == by_microbatch.size()) {
                by_microbatch.emplace_back();
                kind_of.push_back(
                    kind.try_emplace(all[i].module, static_cast<std::uint32_t>(kind.size())).first->second);
            }
            by_microbatch[row->second].push_back(group->second);
            microbatch_of.push_back(row->second);
            late.push_back(flat.late[i]);
        }
        group_of[i] = group->second;
        members[group->second].push_back(i);
    }
    pace.assign(kind.size(), 1);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> work;  // of a microbatch on a rank
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        const std::uint32_t mine = microbatch_of[group_of[i]];
        std::int64_t& sum = work[{mine, flat.rank_of[i]}];
        sum += flat.shortest[i];
        pace[kind_of[mine]] = std::max(pace[kind_of[mine]], sum);
    }
    for (const auto& list : members) {
        tasks.items.insert(tasks.items.end(), list.begin(), list.end());
        tasks.first.push_back(static_cast<std::uint32_t>(tasks.items.size()));
    }
}

GroupSearch::GroupSearch(const Flat& flat, const TaskGroups& groups)
    : flat_(flat),
      groups_(groups),
      dispatcher_(flat),
      order_(groups.tasks.size()),
      position_(flat.tasks()),
      line_(flat.tasks()),
      wish_(flat.tasks()) {}

void GroupSearch::start(Choice choice, std::span<const std::uint32_t> place) {
    keys_.choice = choice;
    std::vector<std::uint32_t> first(groups_.tasks.size(), UINT32_MAX);
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i)
        first[groups_.group_of[i]] = std::min(first[groups_.group_of[i]], place[i]);
    const auto rank = keys_by(static_cast<std::uint32_t>(first.size()),
                              [&](std::uint32_t a, std::uint32_t b) { return first[a] < first[b]; });
    keys_.key.clear();
    for (const std::uint32_t r : rank) keys_.key.push_back(spacing * r);
    makespan_ = INT64_MAX;
}

void GroupSearch::start_staggered(Random& random, std::int64_t horizon) {
    keys_.timed = true;
    keys_.key.assign(groups_.tasks.size(), 0);
    makespan_ = INT64_MAX;
    const std::size_t kinds = groups_.pace.size();
    const auto below = [&](std::int64_t limit) {
        return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(std::max<std::int64_t>(1, limit))));
    };
    std::vector<std::int64_t> count(kinds, 0), next, distance, hold;
    for (const std::uint32_t kind : groups_.kind_of) ++count[kind];
    for (std::size_t k = 0; k < kinds; ++k) {
        next.push_back(random.below(2) == 0 ? 0 : below(horizon / 2));
        // At the pace of the busiest rank, somewhat slower, or anything.
        const std::int64_t slower = groups_.pace[k] + groups_.pace[k] * below(9) / 8;
        distance.push_back(random.below(3) == 0 ? below(horizon / count[k]) : std::min(slower, horizon / count[k]));
        hold.push_back(random.below(2) == 0 ? 0 : below(horizon / 2));
    }
    for (std::size_t m = 0; m < groups_.by_microbatch.size(); ++m) {
        const std::uint32_t kind = groups_.kind_of[m];
        for (const std::uint32_t group : groups_.by_microbatch[m])
            keys_.key[group] = next[kind] + (groups_.late[group] != 0 ? hold[kind] : 0);
        next[kind] += distance[kind];
    }
}

std::int64_t GroupSearch::evaluate() {
    if (keys_.timed) {
        for (std::uint32_t i = 0; i < flat_.tasks(); ++i) wish_[i] = keys_.key[groups_.group_of[i]] + flat_.head[i];
        dispatcher_.run_by_key(wish_);
        return dispatcher_.makespan();
    }
    std::iota(order_.begin(), order_.end(), 0U);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(keys_.key[a], a) < std::pair(keys_.key[b], b);
    });
    std::uint32_t next = 0;
    for (const std::uint32_t group : order_)
        for (const std::uint32_t task : groups_.tasks[group]) position_[task] = next++;
    if (keys_.choice == Choice::in_order) {
        next = 0;
        for (const std::uint32_t task : sorted_by_key(flat_.before, flat_.after, position_)) line_[next++] = task;
        for (std::uint32_t i = 0; i < next; ++i) position_[line_[i]] = i;
    }
    dispatcher_.run(keys_.choice, position_);
    return dispatcher_.makespan();
}

// All microbatches of a kind, or their forwards or backwards alone.
void GroupSearch::shift_kind(std::int64_t by, Random& random) {
    const auto kind = random.below(groups_.pace.size());
    const auto part = random.below(3);
    for (std::size_t group = 0; group < keys_.key.size(); ++group)
        if (groups_.kind_of[groups_.microbatch_of[group]] == kind && (part == 2 || groups_.late[group] == part))
            keys_.key[group] += by;
}

void GroupSearch::change(Random& random) {
    const auto groups = keys_.key.size();
    const std::uint64_t whole = keys_.timed ? static_cast<std::uint64_t>(makespan_) : groups * spacing;
    const auto halvings = static_cast<std::uint64_t>(std::bit_width(groups));
    const auto reach = std::max<std::uint64_t>(2 * spacing, whole >> random.below(halvings));
    const std::int64_t by = static_cast<std::int64_t>(random.below(2 * reach)) - static_cast<std::int64_t>(reach);
    const auto& of_one = groups_.by_microbatch[random.below(groups_.by_microbatch.size())];
    switch (random.below(groups_.pace.size() > 1 ? 4 : 3)) {
        case 3:
            shift_kind(by, random);
            break;
        case 0:
            keys_.key[random.below(groups)] += by;
            break;
        case 1:
            for (const std::uint32_t group : of_one) keys_.key[group] += by;
            break;
        default: {
            const auto& of_other = groups_.by_microbatch[random.below(groups_.by_microbatch.size())];
            // Text-only microbatches have fewer groups: the last ones, the language model's, change places.
            const std::size_t common = std::min(of_one.size(), of_other.size());
            for (std::size_t k = 1; k <= common; ++k)
                std::swap(keys_.key[of_one[of_one.size() - k]], keys_.key[of_other[of_other.size() - k]]);
        }
    }
}

void GroupSearch::step(Random& random) {
    old_ = keys_;
    change(random);
    const std::int64_t now = evaluate();
    if (now <= makespan_)
        makespan_ = now;
    else
        keys_.key = old_.key;
}

}  // namespace pipeweaver::search
