#include "search/improve/rebuild.hpp"

#include <algorithm>

namespace pipeweaver::search {

Rebuild::Rebuild(const Flat& flat, const TaskGroups& groups)
    : flat_(flat), groups_(groups), dispatcher_(flat), key_(flat.tasks()) {}

void Rebuild::shift(std::span<const std::uint32_t> tasks, std::int64_t by) {
    for (const std::uint32_t task : tasks) key_[task] += by;
}

// Two microbatches exchange their wished times, the last groups of one with the last of the other (a text-only
// microbatch has fewer), task by task.
void Rebuild::exchange(std::uint32_t microbatch, std::uint32_t other) {
    const auto& mine = groups_.by_microbatch[microbatch];
    const auto& theirs = groups_.by_microbatch[other];
    for (std::size_t k = 1; k <= std::min(mine.size(), theirs.size()); ++k) {
        const auto a = groups_.tasks[mine[mine.size() - k]], b = groups_.tasks[theirs[theirs.size() - k]];
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) std::swap(key_[a[i]], key_[b[i]]);
    }
}

// Tasks that start in a stretch of time get other wished moments near by.
void Rebuild::shake(std::int64_t from, std::int64_t length, Random& random) {
    for (std::int64_t& key : key_)
        if (key >= from && key < from + length)
            key += static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(length))) - length / 2;
}

void Rebuild::wish(const IncrementalSchedule& current, Random& random) {
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i) key_[i] = current.start(i);
    const auto span = static_cast<std::uint64_t>(current.energy().makespan);
    const std::uint64_t reach = 1 + (span >> (1 + random.below(7)));
    const auto by = static_cast<std::int64_t>(random.below(2 * reach)) - static_cast<std::int64_t>(reach);
    const auto microbatches = groups_.by_microbatch.size();
    const auto microbatch = static_cast<std::uint32_t>(random.below(microbatches));
    const auto& of_one = groups_.by_microbatch[microbatch];
    switch (random.below(5)) {
        case 0:
            shift(groups_.tasks[static_cast<std::uint32_t>(random.below(groups_.tasks.size()))], by);
            break;
        case 1:
            for (const std::uint32_t group : of_one) shift(groups_.tasks[group], by);
            break;
        case 2: {  // a part of a microbatch: its later groups
            const std::uint64_t from = random.below(of_one.size());
            for (std::size_t k = from; k < of_one.size(); ++k) shift(groups_.tasks[of_one[k]], by);
            break;
        }
        case 3:
            exchange(microbatch, static_cast<std::uint32_t>(random.below(microbatches)));
            break;
        default:
            shake(static_cast<std::int64_t>(random.below(span)), static_cast<std::int64_t>(reach), random);
    }
}

bool Rebuild::propose(const IncrementalSchedule& current, Random& random) {
    if (!prepared_ || mode_ != current.mode()) {
        mode_ = current.mode();
        prepared_ = true;
        fits_ = !dispatcher_.change_costs(flat_.costs(mode_));
    }
    if (!fits_) return false;
    wish(current, random);
    dispatcher_.run_by_key(key_);
    return true;
}

}  // namespace pipeweaver::search
