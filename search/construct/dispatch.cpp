#include "search/construct/dispatch.hpp"

#include "pipeweaver/base/assert.hpp"
#include "search/tuning.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace pipeweaver::search {

Dispatcher::Dispatcher(const Flat& flat) : ListScheduler(flat) {}

void Dispatcher::begin() {
    ListScheduler::begin();
    last_late_.assign(flat_.ranks(), 1);
    makespan_ = 0;
}

void Dispatcher::set_up_queues() {
    queue_.resize(2 * std::size_t{flat_.ranks()});
    slot_of_.resize(flat_.tasks());
    where_.assign(flat_.tasks(), Where::outside);
    std::vector<std::uint32_t> by_position(flat_.tasks(), UINT32_MAX);
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i) {
        PIPEWEAVER_ASSERT(position_[i] < flat_.tasks() && by_position[position_[i]] == UINT32_MAX);
        by_position[position_[i]] = i;
    }
    for (Queue& queue : queue_) {
        queue.task_at.clear();
        queue.coming.clear();
        queue.refused.clear();
    }
    for (const std::uint32_t task : by_position) {
        auto& slots = queue_of(task).task_at;
        slot_of_[task] = static_cast<std::uint32_t>(slots.size());
        slots.push_back(task);
    }
    for (Queue& queue : queue_) queue.now.reset(queue.task_at.size());
    if (choice_ == Choice::look_ahead) set_up_shortest();
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i)
        if (missing_[i] == 0) enqueue(i);
}

void Dispatcher::set_up_shortest() {
    shortest_slot_of_.resize(flat_.tasks());
    for (Queue& queue : queue_) {
        auto& by_duration = queue.task_by_duration;
        by_duration = queue.task_at;
        std::stable_sort(by_duration.begin(), by_duration.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return costs_[a].duration < costs_[b].duration; });
        for (std::uint32_t slot = 0; slot < by_duration.size(); ++slot) shortest_slot_of_[by_duration[slot]] = slot;
        queue.shortest.reset(by_duration.size());
    }
}

void Dispatcher::open_window(std::uint32_t width) {
    window_ = {};
    window_.width = width;
    if (width == 0) return;
    const auto& tasks = flat_.problem().tasks;
    std::map<std::int64_t, std::uint32_t> place;
    for (const auto& task : tasks) place.emplace(task.microbatch.value_or(-1), 0);
    std::uint32_t next = 0;
    for (auto& [number, mine] : place) mine = next++;
    window_.left.assign(place.size(), 0);
    window_.waiting.resize(place.size());
    for (const auto& task : tasks) {
        window_.microbatch_of.push_back(place[task.microbatch.value_or(-1)]);
        ++window_.left[window_.microbatch_of.back()];
    }
    window_.admitted = width;
}

// So many microbatches may begin.
void Dispatcher::admit(std::uint32_t microbatches) {
    while (window_.admitted < microbatches) {
        if (window_.admitted++ >= window_.waiting.size()) continue;
        for (const std::uint32_t task : std::exchange(window_.waiting[window_.admitted - 1], {})) {
            enqueue(task);
            make_stale(flat_.rank_of[task]);
        }
    }
}

// What is next in line, or in the window, waits for memory that only others would give back.
void Dispatcher::go_on_anyhow() {
    if (window_.width > 0) {
        PIPEWEAVER_ASSERT(window_.admitted < window_.waiting.size());
        return admit(window_.admitted + 1);
    }
    PIPEWEAVER_ASSERT(!any_turn_);
    any_turn_ = true;
    all_stale();
}

void Dispatcher::insert_now(std::uint32_t task) {
    Queue& queue = queue_of(task);
    const Want want = memory_.want(task);
    queue.now.insert(slot_of_[task], want);
    if (choice_ == Choice::look_ahead) queue.shortest.insert(shortest_slot_of_[task], want);
}

void Dispatcher::remove_now(std::uint32_t task) {
    Queue& queue = queue_of(task);
    queue.now.remove(slot_of_[task]);
    if (choice_ == Choice::look_ahead) queue.shortest.remove(shortest_slot_of_[task]);
}

bool Dispatcher::later(std::uint32_t a, std::uint32_t b) const {
    return std::pair(ready_at_[a], position_[a]) > std::pair(ready_at_[b], position_[b]);
}

void Dispatcher::enqueue(std::uint32_t task) {
    if (window_.width > 0 && window_.microbatch_of[task] >= window_.admitted)
        return window_.waiting[window_.microbatch_of[task]].push_back(task);
    Queue& queue = queue_of(task);
    where_[task] = ready_at_[task] <= clock_[flat_.rank_of[task]] ? Where::now : Where::coming;
    if (where_[task] == Where::now) return insert_now(task);
    queue.coming.push_back(task);
    std::push_heap(queue.coming.begin(), queue.coming.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return later(a, b); });
}

// A task that is about to run or was refused. One that is still to come is on top of its heap, but for a next in turn.
void Dispatcher::take_out(std::uint32_t task) {
    Queue& queue = queue_of(task);
    const Where where = std::exchange(where_[task], Where::outside);
    if (where == Where::now) return remove_now(task);
    const auto worse = [&](std::uint32_t a, std::uint32_t b) { return later(a, b); };
    if (queue.coming.front() == task) {
        std::pop_heap(queue.coming.begin(), queue.coming.end(), worse);
        queue.coming.pop_back();
    } else {
        std::erase(queue.coming, task);
        std::make_heap(queue.coming.begin(), queue.coming.end(), worse);
    }
}

// The bars of memory do not hold for its tasks any more. Pre: its first task was placed.
void Dispatcher::begin_component(std::uint32_t first) {
    for (const std::uint32_t task : memory_.component_tasks(first))
        if (where_[task] == Where::now) insert_now(task);
}

void Dispatcher::refuse(std::uint32_t task) {
    take_out(task);
    set_refused(task);
    queue_of(task).refused.push_back(task);
}

// Brings the rank's queues up to its clock, and back what may be allowed again.
void Dispatcher::refresh(std::uint32_t rank) {
    for (const std::size_t kind : {0U, 1U}) {
        Queue& queue = queue_[2 * rank + kind];
        while (!queue.coming.empty() && ready_at_[queue.coming.front()] <= clock_[rank]) {
            const std::uint32_t task = queue.coming.front();
            take_out(task);
            enqueue(task);
        }
        if (queue.refused.empty() || refused(queue.refused.front())) continue;
        for (const std::uint32_t task : queue.refused) enqueue(task);
        queue.refused.clear();
    }
}

// What could start at the rank's clock, by priority. Those left out would be refused.
Dispatcher::NextTask Dispatcher::best_now(const Queue& queue, std::uint32_t rank) const {
    const std::size_t slot = queue.now.first(std::min(memory_.room_left(rank), unlimited - 1), memory_.bar(rank));
    if (slot == ReadyList::nothing) return {};
    return {queue.task_at[slot], clock_[rank]};
}

Dispatcher::NextTask Dispatcher::best_coming(Queue& queue, std::uint32_t rank) {
    while (!queue.coming.empty() && costs_[queue.coming.front()].acquire > memory_.room_left(rank))
        refuse(queue.coming.front());
    if (queue.coming.empty()) return {};
    return {queue.coming.front(), ready_at_[queue.coming.front()]};
}

Dispatcher::NextTask Dispatcher::best_of(std::uint32_t rank, bool late) {
    if (choice_ == Choice::in_order && !any_turn_ && !late) return next_in_turn(rank);
    Queue& queue = queue_[2 * rank + (late ? 1U : 0U)];
    const NextTask now = best_now(queue, rank);
    return now.task != UINT32_MAX ? now : best_coming(queue, rank);
}

Dispatcher::NextTask Dispatcher::next_looking_ahead(std::uint32_t rank) {
    const std::int64_t free = std::min(memory_.room_left(rank), unlimited - 1);
    const Bar bar = memory_.bar(rank);
    const std::span queues(&queue_[2 * std::size_t{rank}], 2);
    NextTask next;
    for (const Queue& queue : queues) {
        const std::size_t slot = queue.shortest.first(free, bar);
        if (slot != ReadyList::nothing)
            next.time = std::min(next.time, clock_[rank] + costs_[queue.task_by_duration[slot]].duration);
        for (const std::uint32_t task : queue.coming)
            if (costs_[task].acquire <= free) next.time = std::min(next.time, ready_at_[task] + costs_[task].duration);
    }
    const auto consider = [&](std::uint32_t task) {
        if (next.task == UINT32_MAX || position_[task] < position_[next.task]) next.task = task;
    };
    for (const Queue& queue : queues) {
        const std::size_t slot = queue.now.first(free, bar);
        if (slot != ReadyList::nothing) consider(queue.task_at[slot]);
        for (const std::uint32_t task : queue.coming)
            if (costs_[task].acquire <= free && ready_at_[task] < next.time) consider(task);
    }
    return next;
}

// The first of the rank's forwards that have not run, if it is ready.
Dispatcher::NextTask Dispatcher::next_in_turn(std::uint32_t rank) const {
    if (next_in_line_[rank] == line_[rank].size()) return {};
    const std::uint32_t task = line_[rank][next_in_line_[rank]];
    if (missing_[task] != 0 || refused(task)) return {};
    return {task, std::max(clock_[rank], ready_at_[task])};
}

// The task that can start first, by the choice among those at the same time.
Dispatcher::NextTask Dispatcher::next_task(std::uint32_t rank) {
    refresh(rank);
    if (choice_ == Choice::look_ahead) return next_looking_ahead(rank);
    const NextTask forward = best_of(rank, false), late = best_of(rank, true);
    if (late.task == UINT32_MAX || forward.time < late.time) return forward;
    if (forward.task == UINT32_MAX || late.time < forward.time) return late;
    if (choice_ == Choice::dual_queue && late.time == clock_[rank]) return last_late_[rank] != 0 ? forward : late;
    if (choice_ == Choice::backward_first) return late;
    return position_[forward.task] < position_[late.task] ? forward : late;
}

void Dispatcher::place(std::uint32_t task) {
    const std::uint32_t rank = flat_.rank_of[task];
    const std::int64_t end = append(task, std::max(clock_[rank], ready_at_[task]));
    makespan_ = std::max(makespan_, end + flat_.rank_tail[rank]);
    missing_[task] = UINT32_MAX;
    last_late_[rank] = static_cast<char>(flat_.late[task]);
    if (choice_ != Choice::in_order) return;
    auto& next = next_in_line_[rank];
    while (next < line_[rank].size() && missing_[line_[rank][next]] == UINT32_MAX) ++next;
    if (any_turn_) all_stale();
    any_turn_ = false;
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

// What its end lets begin.
void Dispatcher::end_of(std::uint32_t task) {
    for (const Arc& arc : flat_.after[task]) {
        if (missing_[arc.task] > 0) continue;
        enqueue(arc.task);
        make_stale(flat_.rank_of[arc.task]);
    }
    if (window_.width == 0) return;
    --window_.left[window_.microbatch_of[task]];
    while (window_.ended < window_.left.size() && window_.left[window_.ended] == 0) ++window_.ended;
    admit(window_.ended + window_.width);
}

void Dispatcher::run(Choice choice, std::span<const std::uint32_t> position, std::span<const std::int64_t> release,
                     std::uint32_t window) {
    choice_ = choice;
    position_ = position;
    begin();
    open_window(window);
    if (!release.empty()) ready_at_.assign(release.begin(), release.end());
    set_up_queues();
    if (choice == Choice::in_order) line_up();
    while (sequence_.size() < flat_.tasks()) {
        const std::uint32_t rank = next_rank([this](std::uint32_t r) { return next_task(r); });
        const std::uint32_t task = next_task_[rank].task;
        if (task == UINT32_MAX) {
            go_on_anyhow();
        } else if (memory_.allows(task)) {
            const bool begins = memory_.begins(task);
            take_out(task);
            place(task);
            if (begins) begin_component(task);
            end_of(task);
        } else {
            refuse(task);
            make_stale(rank);
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
    key_ = key;
    begin();
    heap_.clear();
    waiting_.clear();
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i)
        if (missing_[i] == 0) push(i);
    while (sequence_.size() < flat_.tasks()) {
        if (heap_.empty()) recall_refused(waiting_.size());
        PIPEWEAVER_ASSERT(!heap_.empty());
        std::pop_heap(heap_.begin(), heap_.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return std::pair(key_[a], a) > std::pair(key_[b], b); });
        const std::uint32_t task = heap_.back();
        heap_.pop_back();
        if (!memory_.allows(task)) {
            waiting_.push_back(task);
            continue;
        }
        place(task);
        for (const Arc& arc : flat_.after[task])
            if (missing_[arc.task] == 0) push(arc.task);
        if (memory_.relief() == seen_relief_) continue;
        seen_relief_ = memory_.relief();
        recall_refused(tuning.dispatch.recalled_at_once);
    }
}

}  // namespace pipeweaver::search
