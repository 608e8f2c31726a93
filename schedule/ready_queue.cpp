#include "pipeweaver/schedule/ready_queue.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

namespace pipeweaver::schedule {

ReadyQueue::ReadyQueue(const Replayer& replayer, const Schedule& schedule) {
    const Problem& problem = replayer.problem();
    const auto costs = replayer.costs(schedule.mode);
    const std::size_t tasks = problem.tasks.size();
    place_of_.resize(tasks);
    lane_of_.resize(tasks);
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const Rank& rank = problem.ranks[r];
        Lane lane{.first = static_cast<std::uint32_t>(list_.size()),
                  .capacity = rank.capacity ? rank.capacity->count : INT64_MAX,
                  .base = rank.base.count,
                  .tail = rank.tail.count()};
        for (const TaskId task : schedule.order[r]) {
            place_of_[index(task)] = static_cast<std::uint32_t>(list_.size());
            lane_of_[index(task)] = static_cast<std::uint32_t>(r);
            list_.push_back(static_cast<std::uint32_t>(task));
            need_.push_back({costs[index(task)].acquire.count, costs[index(task)].release.count});
        }
        lane.last = static_cast<std::uint32_t>(list_.size());
        lanes_.push_back(lane);
    }
    for (std::size_t task = 0; task < tasks; ++task) {
        edges_to_.push_back(static_cast<std::uint32_t>(replayer.predecessors(task).size()));
        first_after_.push_back(static_cast<std::uint32_t>(after_.size()));
        const auto arcs = replayer.successors(task);
        after_.insert(after_.end(), arcs.begin(), arcs.end());
    }
    first_after_.push_back(static_cast<std::uint32_t>(after_.size()));
}

// One replay, event by event: a task ends, or becomes ready.
class ReadyQueue::Run {
public:
    Run(const ReadyQueue& queue, std::span<const std::int64_t> durations, ReadySpace& space)
        : queue_(queue), durations_(durations), space_(space) {
        const std::size_t tasks = queue.list_.size();
        space_.events.clear();
        space_.ready.assign(tasks / 64 + 1, 0);
        space_.begun.assign(tasks, 0);
        space_.missing.assign(queue.edges_to_.begin(), queue.edges_to_.end());
        space_.ready_at.assign(tasks, 0);
        for (const Lane& lane : queue.lanes_) ranks_.push_back({.head = lane.first, .held = lane.base});
    }

    Duration makespan() {
        for (std::uint32_t task = 0; task < space_.missing.size(); ++task)
            if (space_.missing[task] == 0) make_ready(task);
        for (std::uint32_t r = 0; r < ranks_.size(); ++r) begin_next(r);
        while (!space_.events.empty()) go_on();
        PIPEWEAVER_ASSERT(ran_ == queue_.list_.size());
        return Duration{makespan_};
    }

private:
    struct State {
        std::uint32_t head = 0;  // the first place whose task has not begun
        std::int64_t held = 0;
        bool busy = false, touched = false;
    };

    // All that happens at one moment, before any rank decides.
    void go_on() {
        now_ = space_.events.front().first;
        while (!space_.events.empty() && space_.events.front().first == now_) {
            std::pop_heap(space_.events.begin(), space_.events.end(), std::greater<>());
            const std::uint32_t task = space_.events.back().second / 2;
            const bool ends = space_.events.back().second % 2 == 0;
            space_.events.pop_back();
            if (ends)
                end(task);
            else
                make_ready(task);
        }
        for (const std::uint32_t r : touched_) {
            ranks_[r].touched = false;
            if (!ranks_[r].busy) begin_next(r);
        }
        touched_.clear();
    }

    void push(std::int64_t at, std::uint32_t code) {
        space_.events.emplace_back(at, code);
        std::push_heap(space_.events.begin(), space_.events.end(), std::greater<>());
    }

    void touch(std::uint32_t rank) {
        if (ranks_[rank].touched) return;
        ranks_[rank].touched = true;
        touched_.push_back(rank);
    }

    void make_ready(std::uint32_t task) {
        const std::uint32_t place = queue_.place_of_[task];
        space_.ready[place / 64] |= std::uint64_t{1} << (place % 64);
        touch(queue_.lane_of_[task]);
    }

    void end(std::uint32_t task) {
        const std::uint32_t rank = queue_.lane_of_[task];
        State& state = ranks_[rank];
        state.busy = false;
        state.held -= queue_.need_[queue_.place_of_[task]].release;
        touch(rank);
        makespan_ = std::max(makespan_, now_ + queue_.lanes_[rank].tail);
        ++ran_;
        for (std::uint32_t a = queue_.first_after_[task]; a < queue_.first_after_[task + 1]; ++a) {
            const auto [to, lag] = queue_.after_[a];
            space_.ready_at[to] = std::max(space_.ready_at[to], now_ + lag);
            if (--space_.missing[to] > 0) continue;
            if (space_.ready_at[to] <= now_)
                make_ready(to);
            else
                push(space_.ready_at[to], 2 * to + 1);
        }
    }

    void begin_next(std::uint32_t rank) {
        const auto place = next_place(rank);
        if (!place) return;
        const std::uint32_t task = queue_.list_[*place];
        space_.ready[*place / 64] &= ~(std::uint64_t{1} << (*place % 64));
        space_.begun[*place] = 1;
        ranks_[rank].busy = true;
        ranks_[rank].held += queue_.need_[*place].acquire;
        push(now_ + durations_[task], 2 * task);
    }

    // The first ready task that memory allows.
    std::optional<std::uint32_t> next_place(std::uint32_t rank) {
        const Lane& lane = queue_.lanes_[rank];
        State& state = ranks_[rank];
        while (state.head < lane.last && space_.begun[state.head] != 0) ++state.head;
        std::int64_t refused = INT64_MAX;
        for (std::uint32_t word = state.head / 64; 64 * word < lane.last; ++word) {
            std::uint64_t bits = space_.ready[word];
            if (64 * word < state.head) bits &= ~std::uint64_t{0} << (state.head % 64);
            for (; bits != 0; bits &= bits - 1) {
                const std::uint32_t place = 64 * word + static_cast<std::uint32_t>(std::countr_zero(bits));
                if (place >= lane.last) return std::nullopt;
                if (place == state.head || may_go_ahead(lane, state, place, refused)) return place;
            }
        }
        return std::nullopt;
    }

    // Whether what is left of the list still fits with this task in front of it. What keeps as much as one that was
    // refused at an earlier place is refused, too.
    bool may_go_ahead(const Lane& lane, const State& state, std::uint32_t place, std::int64_t& refused) const {
        if (lane.capacity == INT64_MAX) return true;
        const Need& mine = queue_.need_[place];
        if (state.held + mine.acquire > lane.capacity) return false;
        if (mine.kept() <= 0) return true;
        if (mine.kept() >= refused) return false;
        std::int64_t level = state.held + mine.kept();
        for (std::uint32_t p = state.head; p < place; ++p) {
            if (space_.begun[p] != 0) continue;
            if (level + queue_.need_[p].acquire > lane.capacity) {
                refused = mine.kept();
                return false;
            }
            level += queue_.need_[p].kept();
        }
        return true;
    }

    const ReadyQueue& queue_;
    std::span<const std::int64_t> durations_;
    ReadySpace& space_;
    std::vector<State> ranks_;
    std::vector<std::uint32_t> touched_;  // ranks
    std::int64_t now_ = 0, makespan_ = 0;
    std::size_t ran_ = 0;
};

Duration ReadyQueue::makespan(std::span<const std::int64_t> duration_ns, ReadySpace& space) const {
    return Run(*this, duration_ns, space).makespan();
}

}  // namespace pipeweaver::schedule
