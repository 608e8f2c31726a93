// What the list schedulers share: the state of a schedule that is built task by task, and the turn of the ranks.
#pragma once

#include "search/construct/bankers_memory.hpp"

namespace pipeweaver::search {

class ListScheduler {
public:
    /// Sets the tasks' costs; see BankersMemory::prepare.
    std::optional<Shortage> prepare(std::span<const Cost> costs) {
        costs_.assign(costs.begin(), costs.end());
        return memory_.prepare(costs);
    }

    /// Of the last run: all tasks in the order in which they were placed (a topological order of edges and ranks'
    /// orders together).
    const std::vector<std::uint32_t>& sequence() const { return sequence_; }

protected:
    /// The task that a rank would place next, and what ranks are compared by: the least goes first.
    struct NextTask {
        std::uint32_t task = UINT32_MAX;
        std::int64_t time = INT64_MAX;
    };

    explicit ListScheduler(const Flat& flat) : flat_(flat), memory_(flat) {}

    /// An empty schedule.
    void begin() {
        memory_.restart();
        sequence_.clear();
        sequence_.reserve(flat_.tasks());
        missing_.resize(flat_.tasks());
        for (std::uint32_t i = 0; i < flat_.tasks(); ++i)
            missing_[i] = static_cast<std::uint32_t>(flat_.before[i].size());
        ready_at_.assign(flat_.tasks(), 0);
        clock_ = flat_.rank_begin;
        next_task_.assign(flat_.ranks(), {});
        refused_at_.assign(flat_.tasks(), 0);
        seen_relief_ = 0;
        all_stale();
    }

    /// Every rank's next task must be found again.
    void all_stale() { stale_.assign(flat_.ranks(), 1); }

    bool refused(std::uint32_t task) const { return refused_at_[task] == memory_.relief() + 1; }
    void set_refused(std::uint32_t task) { refused_at_[task] = memory_.relief() + 1; }

    /// The first rank with the least next task; `find` gives a rank's.
    template <class Find>
    std::uint32_t next_rank(Find find) {
        // Memory given back anywhere may allow what was refused elsewhere.
        if (memory_.relief() != seen_relief_) all_stale();
        seen_relief_ = memory_.relief();
        std::uint32_t next = 0;
        for (std::uint32_t rank = 0; rank < flat_.ranks(); ++rank) {
            if (stale_[rank] != 0) next_task_[rank] = find(rank);
            stale_[rank] = 0;
            if (next_task_[rank].time < next_task_[next].time) next = rank;
        }
        return next;
    }

    /// Places the task at `start`, tells those that wait for it, and returns its end. Pre: memory_.allows(task).
    std::int64_t append(std::uint32_t task, std::int64_t start) {
        memory_.place(task);
        const std::int64_t end = start + costs_[task].duration;
        clock_[flat_.rank_of[task]] = end;
        stale_[flat_.rank_of[task]] = 1;
        sequence_.push_back(task);
        for (const Arc& arc : flat_.after[task]) {
            ready_at_[arc.task] = std::max(ready_at_[arc.task], end + arc.lag_ns);
            --missing_[arc.task];
        }
        return end;
    }

    const Flat& flat_;
    BankersMemory memory_;
    std::vector<Cost> costs_;
    std::vector<std::uint32_t> sequence_, missing_;  // missing_: predecessors that are not placed
    std::vector<std::int64_t> ready_at_, clock_;     // per task: predecessors' ends and lags; per rank
    std::vector<NextTask> next_task_;                // per rank
    std::vector<char> stale_;                        // per rank: next_task_ must be found again
    std::vector<std::uint64_t> refused_at_;          // per task: relief + 1 when memory refused it; 0: never
    std::uint64_t seen_relief_ = 0;
};

}  // namespace pipeweaver::search
