#include "search/improve/group_search.hpp"

#include "search/tuning.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace pipeweaver::search {

namespace {

constexpr std::int64_t spacing = tuning.group.spacing;

}  // namespace

GroupSearch::GroupSearch(const Flat& flat, const TaskGroups& groups)
    : flat_(flat),
      groups_(groups),
      dispatcher_(flat),
      order_(groups.tasks.size()),
      position_(flat.tasks()),
      line_(flat.tasks()) {}

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

std::int64_t GroupSearch::evaluate() {
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
    const auto kind = random.below(groups_.work.size());
    const auto part = random.below(3);
    for (std::size_t group = 0; group < keys_.key.size(); ++group)
        if (groups_.kind_of[groups_.microbatch_of[group]] == kind && (part == 2 || groups_.late[group] == part))
            keys_.key[group] += by;
}

void GroupSearch::change(Random& random) {
    const auto groups = keys_.key.size();
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

std::int64_t GroupSearch::step(Random& random) {
    old_ = keys_;
    change(random);
    const std::int64_t now = evaluate();
    if (now <= makespan_)
        makespan_ = now;
    else
        keys_.key = old_.key;
    return now;
}

}  // namespace pipeweaver::search
