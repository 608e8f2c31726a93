#include "search/instance/critical_path.hpp"

#include <algorithm>

namespace pipeweaver::search {

CriticalPath::CriticalPath(const Flat& flat) : flat_(&flat) {
    for (auto* list : {&path_, &old_path_}) list->reserve(flat.tasks());
    for (auto* list : {&critical_, &old_critical_}) list->reserve(flat.tasks());
}

void CriticalPath::change(std::uint32_t first, std::uint32_t last) {
    first_ = std::min(first_, first);
    last_ = std::max(last_, last);
}

std::uint32_t CriticalPath::last_task(const TaskOrder& order, const Timing& timing) const {
    for (std::uint32_t r = 0; r < flat_->ranks(); ++r) {
        const std::uint32_t last = order.previous(order.end(r));
        if (last != order.begin() && timing.end(last) + flat_->rank_tail[r] == timing.energy().makespan) return last;
    }
    return order.begin();
}

// Puts the task on the path. Returns the one that it waits for, or begin().
std::uint32_t CriticalPath::step_back(const TaskOrder& order, const Timing& timing, std::uint32_t task) {
    path_.push_back({task, static_cast<std::uint32_t>(critical_.size())});
    const std::int64_t begin = timing.start(task);
    const std::uint32_t previous = order.previous(task);
    if (previous != order.begin() && timing.end(previous) == begin) {
        critical_.push_back(task);
        return previous;
    }
    std::uint32_t next = order.begin();
    for (const Arc& arc : flat_->cross_before[task])
        if (timing.end(arc.task) + arc.lag_ns == begin) next = arc.task;
    return next;
}

const std::vector<std::uint32_t>& CriticalPath::tasks(const TaskOrder& order, const Timing& timing) {
    if (known_ && first_ > last_) return critical_;
    if (!known_) path_.clear();
    std::swap(path_, old_path_);
    std::swap(critical_, old_critical_);
    path_.clear();
    critical_.clear();
    // What lies after the changes is as it was, if it begins as it did.
    std::uint32_t task = last_task(order, timing);
    auto old = old_path_.begin();
    const auto after = [&](const Stop& stop) { return order.place(stop.task) > last_; };
    if (old != old_path_.end() && old->task == task && after(*old)) {
        old = std::partition_point(old, old_path_.end(), after) - 1;
        path_.assign(old_path_.begin(), old);
        critical_.assign(old_critical_.begin(), old_critical_.begin() + old->critical);
        task = old->task;
    }
    // So is what lies before them, once the path is back there.
    old =
        std::partition_point(old, old_path_.end(), [&](const Stop& stop) { return order.place(stop.task) >= first_; });
    while (task != order.begin()) {
        while (old != old_path_.end() && order.place(old->task) > order.place(task)) ++old;
        if (old != old_path_.end() && old->task == task) break;
        task = step_back(order, timing, task);
    }
    if (task != order.begin()) {
        const auto more = static_cast<std::uint32_t>(critical_.size());
        for (auto stop = old; stop != old_path_.end(); ++stop)
            path_.push_back({stop->task, more + stop->critical - old->critical});
        critical_.insert(critical_.end(), old_critical_.begin() + old->critical, old_critical_.end());
    }
    known_ = true;
    first_ = UINT32_MAX;
    last_ = 0;
    return critical_;
}

}  // namespace pipeweaver::search
