#include "search/instance/timing.hpp"

#include "search/tuning.hpp"

#include <algorithm>

namespace pipeweaver::search {

Timing::Timing(const Flat& flat, unsigned shift)
    : flat_(&flat), tasks_(flat.tasks()), shift_(shift), time_(flat.tasks() + 1 + flat.ranks()), places_(flat.tasks()) {
    // Neither ever seems to depend on what changed: nothing pushes an end() back, no path before begin() gets longer.
    time_[tasks_].tail = unlimited;
    std::vector<char> used(flat.ranks(), 0);
    for (const std::uint32_t rank : flat.rank_of) used[rank] = 1;
    for (std::uint32_t r = 0; r < flat.ranks(); ++r)
        time_[tasks_ + 1 + r] = {unlimited, used[r] != 0 ? flat.rank_tail[r] : 0, 0};
    old_.reserve(flat.tasks());
}

std::int64_t Timing::makespan(const TaskOrder& order) const {
    std::int64_t latest = 0;
    for (std::uint32_t r = 0; r < flat_->ranks(); ++r) {
        const std::uint32_t end = order.end(r);
        latest = std::max(latest, time_[order.previous(end)].end + time_[end].duration);
    }
    return latest;
}

// What is inlined by force in this file is the body of inner loops: it makes annealing a tenth faster.

[[gnu::always_inline]] inline std::int64_t Timing::earliest_start(const TaskOrder& order, std::uint32_t task) const {
    std::int64_t start = time_[order.previous(task)].end;
    for (const Arc& arc : flat_->cross_before[task]) start = std::max(start, time_[arc.task].end + arc.lag_ns);
    return start;
}

[[gnu::always_inline]] inline std::int64_t Timing::longest_tail(const TaskOrder& order, std::uint32_t task) const {
    const Time& next = time_[order.next(task)];
    std::int64_t tail = next.duration + next.tail;
    for (const Arc& arc : flat_->cross_after[task])
        tail = std::max(tail, arc.lag_ns + time_[arc.task].duration + time_[arc.task].tail);
    return tail;
}

void Timing::load(const TaskOrder& order, std::span<const Cost> costs) {
    std::int64_t ends = 0;
    for (const std::uint32_t task : order.sequence()) {
        Time& time = time_[task];
        time.duration = costs[task].duration;
        time.end = earliest_start(order, task) + time.duration;
        ends += time.end >> shift_;
    }
    energy_ = {makespan(order), ends};
    old_.clear();
    tails_known_ = false;
}

// What it pushes back is more than the slack of what follows: `end` with the paths after the window of the step.
bool Timing::too_long_before(const TaskOrder& order, std::uint32_t task, std::uint32_t other,
                             std::int64_t limit) const {
    const std::uint32_t last = order.place(task);
    std::int64_t end = time_[order.previous(other)].end;
    for (const Arc& arc : flat_->cross_before[task]) end = std::max(end, time_[arc.task].end + arc.lag_ns);
    end += time_[task].duration;
    for (std::uint32_t pushed = other; pushed != task; pushed = order.next(pushed)) {
        if (end <= start(pushed)) return false;
        end += time_[pushed].duration;
        for (const Arc& arc : flat_->cross_after[pushed]) {
            const Time& time = time_[arc.task];
            if (order.place(arc.task) > last && end + arc.lag_ns + time.duration + time.tail > limit) return true;
        }
    }
    const Time& next = time_[order.next(task)];
    return end + next.duration + next.tail > limit;
}

// The mirror image: `path` from the start of a task to the end of the step.
bool Timing::too_long_after(const TaskOrder& order, std::uint32_t task, std::uint32_t other, std::int64_t limit) const {
    const std::uint32_t first = order.place(task);
    const Time& next = time_[order.next(other)];
    std::int64_t path = next.duration + next.tail;
    for (const Arc& arc : flat_->cross_after[task])
        path = std::max(path, arc.lag_ns + time_[arc.task].duration + time_[arc.task].tail);
    path += time_[task].duration;
    for (std::uint32_t pushed = other; pushed != task; pushed = order.previous(pushed)) {
        if (path <= time_[pushed].tail) return false;
        path += time_[pushed].duration;
        for (const Arc& arc : flat_->cross_before[pushed])
            if (order.place(arc.task) < first && time_[arc.task].end + arc.lag_ns + path > limit) return true;
    }
    return time_[order.previous(task)].end + path > limit;
}

// The places to look at after the task's end has changed: up to the one returned, and those put into the set, of tasks
// far away that waited for the old end or must wait for the new one. (There a choice between equal paths may change.)
[[gnu::always_inline]] inline std::uint32_t Timing::follow_end(const TaskOrder& order, std::uint32_t task,
                                                               std::int64_t old, std::uint32_t until) {
    const std::uint32_t place = order.place(task);
    const auto follow = [&](std::uint32_t next, std::int64_t lag) {
        const std::uint32_t at = order.place(next);
        if (at - place <= tuning.timing.near) {
            until = std::max(until, at);
            return;
        }
        const std::int64_t begins = start(next);
        if (time_[task].end + lag >= begins || old + lag == begins) places_.insert(at);
    };
    for (const Arc& arc : flat_->cross_after[task]) follow(arc.task, arc.lag_ns);
    follow(order.next(task), 0);
    return until;
}

// Times again what is in the set and what that changes. False if it makes the schedule too long.
bool Timing::follow_ends(const TaskOrder& order, const Reach& reach, std::int64_t limit) {
    const std::uint32_t* sequence = order.sequence().data();
    const std::int64_t most_inside = limit > unlimited - reach.shorter_by ? unlimited : limit + reach.shorter_by;
    std::uint32_t place = places_.first(0);
    first_visited_ = place;
    for (; place != PlaceSet::none; place = places_.first(place)) {
        for (std::uint32_t until = place; place <= until; ++place) {
            const std::uint32_t task = sequence[place];
            Time& time = time_[task];
            const std::int64_t old = time.end, end = earliest_start(order, task) + time.duration;
            if (end == old) continue;
            time.end = end;
            old_.push_back({task, old});
            energy_.ends += (end >> shift_) - (old >> shift_);
            const std::int64_t most = place > reach.last ? limit : most_inside;
            if (most < unlimited && end + time.tail > most) return false;
            until = follow_end(order, task, old, until);
        }
        last_visited_ = place - 1;
    }
    return true;
}

bool Timing::spread(const TaskOrder& order, const Reach& reach, std::int64_t limit) {
    old_energy_ = energy_;
    old_.clear();
    last_visited_ = 0;
    if (follow_ends(order, reach, limit)) {
        energy_.makespan = makespan(order);
        if (energy_.makespan <= limit) return true;
    }
    places_.clear();
    take_back();
    return false;
}

void Timing::take_back() {
    for (const Old& old : old_) time_[old.task].end = old.end;
    energy_ = old_energy_;
    old_.clear();
}

void Timing::begin_step(const TaskOrder& order) {
    if (tails_known_) return;
    const auto& sequence = order.sequence();
    for (std::size_t k = sequence.size(); k-- > 0;) time_[sequence[k]].tail = longest_tail(order, sequence[k]);
    tails_known_ = true;
}

[[gnu::always_inline]] inline std::uint32_t Timing::follow_tail(const TaskOrder& order, std::uint32_t task,
                                                                std::int64_t old, std::uint32_t until) {
    const std::uint32_t place = order.place(task);
    const auto follow = [&](std::uint32_t previous, std::int64_t path) {
        const std::uint32_t at = order.place(previous);
        if (place - at <= tuning.timing.near)
            until = std::min(until, at);
        else if (path + time_[task].tail > time_[previous].tail || path + old == time_[previous].tail)
            places_.insert(at);
    };
    for (const Arc& arc : flat_->cross_before[task]) follow(arc.task, arc.lag_ns + time_[task].duration);
    if (order.previous(task) != order.begin()) follow(order.previous(task), time_[task].duration);
    return until;
}

void Timing::keep(const TaskOrder& order) {
    old_.clear();
    const std::uint32_t* sequence = order.sequence().data();
    for (std::uint32_t last = places_.last(tasks_); last != PlaceSet::none;) {
        std::uint32_t place = last + 1;
        for (std::uint32_t until = last; place > until;) {
            const std::uint32_t task = sequence[--place];
            const std::int64_t old = time_[task].tail, tail = longest_tail(order, task);
            if (tail == old) continue;
            time_[task].tail = tail;
            until = follow_tail(order, task, old, until);
        }
        last = places_.last(place);
    }
}

}  // namespace pipeweaver::search
