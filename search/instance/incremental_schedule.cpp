#include "search/instance/incremental_schedule.hpp"

#include <algorithm>

namespace pipeweaver::search {

IncrementalSchedule::IncrementalSchedule(const Flat& flat)
    : flat_(flat),
      shift_(end_shift(flat)),
      order_(flat),
      timing_(flat, shift_),
      critical_(flat),
      used_(flat.tasks()),
      cost_(flat.tasks()) {
    retimed_.reserve(6);
}

double IncrementalSchedule::value(const Energy& energy, double weight) const {
    const double unit = static_cast<double>(std::int64_t{1} << shift_);
    return static_cast<double>(energy.makespan) +
           weight * unit * static_cast<double>(energy.ends) / static_cast<double>(flat_.tasks());
}

void IncrementalSchedule::fill_memory() {
    for (std::uint32_t r = 0; r < flat_.ranks(); ++r) {
        std::int64_t used = 0;
        for (std::uint32_t k = order_.row_begin(r); k < order_.row_end(r); ++k) {
            used_[k] = used;
            used += cost_[order_.at(k)].net();
        }
    }
}

void IncrementalSchedule::load(std::span<const std::uint32_t> sequence, std::span<const std::uint32_t> mode) {
    mode_.assign(mode.begin(), mode.end());
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i)
        cost_[i] = flat_.cost(i, flat_.pair_of[i] == schedule::Replayer::unpaired ? 0 : mode[flat_.pair_of[i]]);
    order_.load(sequence);
    timing_.load(order_, cost_);
    fill_memory();
    step_ = Step::none;
    critical_.forget();
}

void IncrementalSchedule::copy(const IncrementalSchedule& other) {
    order_ = other.order_;
    timing_ = other.timing_;
    used_ = other.used_;
    cost_ = other.cost_;
    mode_ = other.mode_;
    step_ = Step::none;
    critical_.forget();
}

// Would the rank's memory allow the task at spot `from` to run at the earlier spot `to`?
bool IncrementalSchedule::fits_moved_before(std::uint32_t from, std::uint32_t to) const {
    const Cost& moved = cost_[order_.at(from)];
    const std::int64_t room = flat_.room[order_.rank(order_.at(from))], net = moved.net();
    if (used_[to] + moved.acquire > room || used_[to] + net < 0) return false;
    for (std::uint32_t k = to; k < from; ++k) {
        const std::int64_t level = used_[k] + net + cost_[order_.at(k)].acquire;
        if (level > room || level - cost_[order_.at(k)].release < 0) return false;
    }
    return true;
}

// The same at the later spot `to`.
bool IncrementalSchedule::fits_moved_after(std::uint32_t from, std::uint32_t to) const {
    const Cost& moved = cost_[order_.at(from)];
    const std::int64_t room = flat_.room[order_.rank(order_.at(from))], net = moved.net();
    std::int64_t level = 0;
    for (std::uint32_t k = from + 1; k <= to; ++k) {
        level = used_[k] - net + cost_[order_.at(k)].acquire;
        if (level > room) return false;
        level -= cost_[order_.at(k)].release;
        if (level < 0) return false;
    }
    return level + moved.acquire <= room && level + net >= 0;
}

// After the order has changed: times, then memory.
bool IncrementalSchedule::finish_move(std::int64_t limit) {
    const TaskOrder::Move& move = order_.last_move();
    for (const std::uint32_t task : {move.task, move.next, order_.next(move.task)}) timing_.touch(order_, task);
    if (!timing_.spread(order_, {.last = order_.window_last()}, limit)) {
        order_.take_back();
        return false;
    }
    refill_memory(std::min(move.from, move.to), std::max(move.from, move.to));
    step_ = Step::move;
    return true;
}

bool IncrementalSchedule::propose_before(std::uint32_t task, std::uint32_t other, std::int64_t limit) {
    if (!fits_moved_before(order_.spot(task), order_.spot(other))) return false;
    timing_.begin_step(order_);
    if (timing_.too_long_before(order_, task, other, limit)) return false;
    return order_.move_before(task, other) && finish_move(limit);
}

bool IncrementalSchedule::propose_after(std::uint32_t task, std::uint32_t other, std::int64_t limit) {
    if (!fits_moved_after(order_.spot(task), order_.spot(other))) return false;
    timing_.begin_step(order_);
    if (timing_.too_long_after(order_, task, other, limit)) return false;
    return order_.move_after(task, other) && finish_move(limit);
}

void IncrementalSchedule::set_mode(std::uint32_t pair, std::uint32_t mode) {
    mode_[pair] = mode;
    for (const std::uint32_t task : tasks_of(flat_.problem().pairs[pair])) cost_[task] = flat_.cost(task, mode);
}

// Memory before the tasks at the spots (first, last + 1] of one row from that at `first`. False if it goes wrong.
bool IncrementalSchedule::refill_memory(std::uint32_t first, std::uint32_t last) {
    const std::uint32_t rank = order_.rank(order_.at(first));
    const std::int64_t room = flat_.room[rank];
    bool fits = true;
    std::int64_t level = used_[first];
    for (std::uint32_t k = first; k <= last; ++k) {
        used_[k] = level;
        level += cost_[order_.at(k)].acquire;
        fits = fits && level <= room;
        level -= cost_[order_.at(k)].release;
        fits = fits && level >= 0;
    }
    return fits;
}

// Times the tasks that last longer or shorter than before.
bool IncrementalSchedule::spread_modes(std::int64_t limit) {
    Timing::Reach reach{.last = 0, .shorter_by = 0};
    for (const std::uint32_t task : retimed_) {
        reach.last = std::max(reach.last, order_.place(task));
        reach.shorter_by += std::max<std::int64_t>(0, timing_.duration(task) - cost_[task].duration);
    }
    for (const std::uint32_t task : retimed_) {
        timing_.set_duration(task, cost_[task].duration);
        timing_.touch(order_, task);
    }
    return timing_.spread(order_, reach, limit);
}

bool IncrementalSchedule::propose_modes(std::span<const ModeChange> changes, std::int64_t limit) {
    timing_.begin_step(order_);
    first_spot_ = UINT32_MAX;
    last_spot_ = 0;
    changed_modes_ = changes.size();
    retimed_.clear();
    for (std::size_t k = 0; k < changes.size(); ++k) {
        old_modes_[k] = {changes[k].pair, mode_[changes[k].pair]};
        set_mode(changes[k].pair, changes[k].mode);
        const auto tasks = tasks_of(flat_.problem().pairs[changes[k].pair]);
        first_spot_ = std::min(first_spot_, order_.spot(tasks.front()));
        last_spot_ = std::max(last_spot_, order_.spot(tasks.back()));
        for (const std::uint32_t task : tasks)
            if (cost_[task].duration != timing_.duration(task) && (retimed_.empty() || retimed_.back() != task))
                retimed_.push_back(task);
    }
    step_ = Step::modes;
    if (refill_memory(first_spot_, last_spot_) && spread_modes(limit)) return true;
    undo_modes();
    return false;
}

void IncrementalSchedule::undo_modes() {
    for (std::size_t k = changed_modes_; k-- > 0;) set_mode(old_modes_[k].pair, old_modes_[k].mode);
    for (const std::uint32_t task : retimed_) timing_.set_duration(task, cost_[task].duration);
    refill_memory(first_spot_, last_spot_);
    step_ = Step::none;
}

void IncrementalSchedule::undo_move() {
    order_.take_back();
    const TaskOrder::Move& move = order_.last_move();
    refill_memory(std::min(move.from, move.to), std::max(move.from, move.to));
    step_ = Step::none;
}

void IncrementalSchedule::keep() {
    critical_.change(timing_.first_visited(), timing_.last_visited());
    if (step_ == Step::move) {
        const TaskOrder::Move& move = order_.last_move();
        critical_.change(order_.window_first(), order_.window_last());
        for (const std::uint32_t task : {move.task, move.previous, order_.previous(move.task)})
            timing_.touch(order_, task);
    } else {
        for (const std::uint32_t task : retimed_) timing_.touch_before(order_, task);
    }
    timing_.keep(order_);
    step_ = Step::none;
}

void IncrementalSchedule::take_back() {
    if (step_ == Step::none) return;
    timing_.take_back();
    if (step_ == Step::move)
        undo_move();
    else
        undo_modes();
}

std::uint32_t IncrementalSchedule::neighbour(std::uint32_t task, std::int64_t distance) const {
    const std::uint32_t rank = order_.rank(task);
    const std::int64_t spot = static_cast<std::int64_t>(order_.spot(task)) + distance;
    if (spot < order_.row_begin(rank) || spot >= order_.row_end(rank)) return no_task;
    return order_.at(static_cast<std::uint32_t>(spot));
}

IncrementalSchedule::Levels IncrementalSchedule::levels(std::uint32_t rank) const {
    Levels levels;
    double sum = 0;
    const std::uint32_t begin = order_.row_begin(rank), end = order_.row_end(rank);
    for (std::uint32_t k = begin; k < end; ++k) {
        const std::int64_t level = used_[k] + cost_[order_.at(k)].acquire;
        levels.peak = std::max(levels.peak, level);
        sum += static_cast<double>(level);
    }
    if (begin < end) levels.average = sum / static_cast<double>(end - begin);
    return levels;
}

bool IncrementalSchedule::overlap(std::uint32_t pair, std::uint32_t other) const {
    const auto mine = tasks_of(flat_.problem().pairs[pair]), theirs = tasks_of(flat_.problem().pairs[other]);
    return order_.spot(mine.front()) < order_.spot(theirs.back()) &&
           order_.spot(theirs.front()) < order_.spot(mine.back());
}

}  // namespace pipeweaver::search
