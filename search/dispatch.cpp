#include "search/dispatch.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>

namespace pipeweaver::search {

Dispatcher::Dispatcher(const Flat& flat) : flat_(flat), memory_(flat) {}

std::optional<Shortage> Dispatcher::prepare(std::span<const Cost> costs) {
    costs_.assign(costs.begin(), costs.end());
    return memory_.prepare(costs);
}

void Dispatcher::begin() {
    memory_.restart();
    sequence_.clear();
    sequence_.reserve(flat_.tasks());
    missing_.resize(flat_.tasks());
    ready_at_.assign(flat_.tasks(), 0);
    clock_ = flat_.begin;
    ready_.resize(flat_.ranks());
    for (auto& tasks : ready_) tasks.clear();
    candidate_.assign(flat_.ranks(), {});
    stale_.assign(flat_.ranks(), 1);
    last_late_.assign(flat_.ranks(), 1);
    refused_at_.assign(flat_.tasks(), 0);
    seen_relief_ = 0;
    makespan_ = 0;
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i) {
        missing_[i] = static_cast<std::uint32_t>(flat_.before[i].size());
        if (missing_[i] == 0) ready_[flat_.rank_of[i]].push_back(i);
    }
}

// The task that can start first, by priority among equals.
Dispatcher::Candidate Dispatcher::list_candidate(std::uint32_t rank) const {
    Candidate best;
    bool best_late = false;
    for (const std::uint32_t task : ready_[rank]) {
        if (refused(task) || out_of_turn(task)) continue;
        const std::int64_t start = std::max(clock_[rank], ready_at_[task]);
        const bool late = choice_ == Choice::backward_first && flat_.late[task] != 0;
        if (start > best.start) continue;
        if (start == best.start && std::pair(!late, position_[task]) > std::pair(!best_late, position_[best.task]))
            continue;
        best = {task, start};
        best_late = late;
    }
    return best;
}

Dispatcher::Candidate Dispatcher::dual_queue_candidate(std::uint32_t rank) const {
    Candidate now[2];  // a forward, a backward that could start now
    for (const std::uint32_t task : ready_[rank]) {
        if (ready_at_[task] > clock_[rank] || refused(task)) continue;
        Candidate& mine = now[flat_.late[task]];
        if (mine.task == UINT32_MAX || position_[task] < position_[mine.task]) mine = {task, clock_[rank]};
    }
    if (now[0].task == UINT32_MAX || now[1].task == UINT32_MAX) return list_candidate(rank);
    return now[last_late_[rank] == 0 ? 1 : 0];
}

Dispatcher::Candidate Dispatcher::candidate(std::uint32_t rank) const {
    return choice_ == Choice::dual_queue ? dual_queue_candidate(rank) : list_candidate(rank);
}

// The rank whose candidate starts first.
std::uint32_t Dispatcher::next_rank() {
    // Memory given back anywhere may allow what was refused elsewhere.
    if (memory_.relief() != seen_relief_) stale_.assign(flat_.ranks(), 1);
    seen_relief_ = memory_.relief();
    std::uint32_t next = 0;
    for (std::uint32_t rank = 0; rank < flat_.ranks(); ++rank) {
        if (stale_[rank] != 0) candidate_[rank] = candidate(rank);
        stale_[rank] = 0;
        if (candidate_[rank].start < candidate_[next].start) next = rank;
    }
    return next;
}

void Dispatcher::place(std::uint32_t rank, const Candidate& chosen) {
    const std::uint32_t task = chosen.task;
    memory_.place(task);
    missing_[task] = UINT32_MAX;
    std::erase(ready_[rank], task);
    const std::int64_t end = chosen.start + costs_[task].duration;
    clock_[rank] = end;
    makespan_ = std::max(makespan_, end + flat_.tail[rank]);
    last_late_[rank] = static_cast<char>(flat_.late[task]);
    stale_[rank] = 1;
    if (choice_ == Choice::in_order) {
        auto& next = next_in_line_[rank];
        while (next < line_[rank].size() && missing_[line_[rank][next]] == UINT32_MAX) ++next;
        if (any_turn_) stale_.assign(flat_.ranks(), 1);
        any_turn_ = false;
    }
    sequence_.push_back(task);
    for (const Arc& arc : flat_.after[task]) {
        ready_at_[arc.task] = std::max(ready_at_[arc.task], end + arc.lag_ns);
        if (--missing_[arc.task] > 0) continue;
        ready_[flat_.rank_of[arc.task]].push_back(arc.task);
        stale_[flat_.rank_of[arc.task]] = 1;
    }
}

// Forwards of each rank by priority.
void Dispatcher::line_up() {
    line_.resize(flat_.ranks());
    for (auto& line : line_) line.clear();
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i)
        if (flat_.late[i] == 0) line_[flat_.rank_of[i]].push_back(i);
    for (auto& line : line_)
        std::sort(line.begin(), line.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return position_[a] < position_[b]; });
    next_in_line_.assign(flat_.ranks(), 0);
    any_turn_ = false;
}

bool Dispatcher::out_of_turn(std::uint32_t task) const {
    if (choice_ != Choice::in_order || any_turn_ || flat_.late[task] != 0) return false;
    const std::uint32_t rank = flat_.rank_of[task];
    return line_[rank][next_in_line_[rank]] != task;
}

void Dispatcher::run(Choice choice, std::span<const std::uint32_t> position) {
    choice_ = choice;
    position_ = position;
    begin();
    if (choice == Choice::in_order) line_up();
    while (sequence_.size() < flat_.tasks()) {
        const std::uint32_t rank = next_rank();
        const Candidate chosen = candidate_[rank];
        if (chosen.task == UINT32_MAX) {
            // What is next in line waits for memory that only others would give back.
            PIPEWEAVER_ASSERT(!any_turn_);
            any_turn_ = true;
            stale_.assign(flat_.ranks(), 1);
            continue;
        }
        if (memory_.allows(chosen.task)) {
            place(rank, chosen);
        } else {
            refused_at_[chosen.task] = memory_.relief() + 1;
            stale_[rank] = 1;
        }
    }
}

std::optional<Shortage> Dispatcher::change_costs(std::span<const Cost> costs) {
    costs_.assign(costs.begin(), costs.end());
    return memory_.change_costs(costs);
}

void Dispatcher::push(std::uint32_t task) {
    heap_.push_back(task);
    std::push_heap(heap_.begin(), heap_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return std::pair(key_[a], a) > std::pair(key_[b], b); });
}

// Lets the first of the refused try again.
void Dispatcher::recall_refused(std::size_t most) {
    std::sort(waiting_.begin(), waiting_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return std::pair(key_[a], a) < std::pair(key_[b], b); });
    const std::size_t count = std::min(most, waiting_.size());
    for (std::size_t i = 0; i < count; ++i) push(waiting_[i]);
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
}

void Dispatcher::run_by_key(std::span<const std::int64_t> key) {
    constexpr std::size_t at_once = 3;  // most of the refused would be refused again
    key_ = key;
    begin();
    heap_.clear();
    waiting_.clear();
    for (const auto& ready : ready_)
        for (const std::uint32_t task : ready) push(task);
    while (sequence_.size() < flat_.tasks()) {
        if (heap_.empty()) recall_refused(waiting_.size());
        PIPEWEAVER_ASSERT(!heap_.empty());
        std::pop_heap(heap_.begin(), heap_.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return std::pair(key_[a], a) > std::pair(key_[b], b); });
        const std::uint32_t task = heap_.back(), rank = flat_.rank_of[task];
        heap_.pop_back();
        if (!memory_.allows(task)) {
            waiting_.push_back(task);
            continue;
        }
        place(rank, {task, std::max(clock_[rank], ready_at_[task])});
        for (const Arc& arc : flat_.after[task])
            if (missing_[arc.task] == 0) push(arc.task);
        if (memory_.relief() == seen_relief_) continue;
        seen_relief_ = memory_.relief();
        recall_refused(at_once);
    }
}

}  // namespace pipeweaver::search
