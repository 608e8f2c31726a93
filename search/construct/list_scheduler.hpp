// What the list schedulers share: the state of a schedule that is built task by task, and the turn of the ranks.
#pragma once

#include "search/construct/bankers_memory.hpp"

#include <algorithm>
#include <utility>

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
        for (first_of_.resize(1); first_of_.size() < 2 * std::size_t{flat_.ranks()};)
            first_of_.resize(2 * first_of_.size());
        std::fill(first_of_.begin(), first_of_.end(), UINT32_MAX);
        refused_at_.assign(flat_.tasks(), 0);
        seen_relief_ = 0;
        refusing_.clear();
        stale_.assign(flat_.ranks(), 0);
        stale_ranks_.clear();
        all_stale();
    }

    /// The rank's next task must be found again.
    void make_stale(std::uint32_t rank) {
        if (std::exchange(stale_[rank], 1) == 0) stale_ranks_.push_back(rank);
    }
    void all_stale() {
        for (std::uint32_t rank = 0; rank < flat_.ranks(); ++rank) make_stale(rank);
    }

    bool refused(std::uint32_t task) const { return refused_at_[task] == memory_.relief() + 1; }
    void set_refused(std::uint32_t task) {
        refused_at_[task] = memory_.relief() + 1;
        refusing_.push_back(flat_.rank_of[task]);
    }

    /// The first rank with the least next task; `find` gives a rank's.
    template <class Find>
    std::uint32_t next_rank(Find find) {
        // Memory given back anywhere may allow what was refused elsewhere.
        if (memory_.relief() != seen_relief_) {
            for (const std::uint32_t rank : refusing_) make_stale(rank);
            refusing_.clear();
        }
        seen_relief_ = memory_.relief();
        for (const std::uint32_t rank : stale_ranks_) {
            next_task_[rank] = find(rank);
            stale_[rank] = 0;
            play_again(rank);
        }
        stale_ranks_.clear();
        return first_of_[1];
    }

    /// Places the task at `start`, tells those that wait for it, and returns its end. Pre: memory_.allows(task).
    std::int64_t append(std::uint32_t task, std::int64_t start) {
        memory_.place(task);
        const std::int64_t end = start + costs_[task].duration;
        clock_[flat_.rank_of[task]] = end;
        make_stale(flat_.rank_of[task]);
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
    std::vector<std::uint32_t> stale_ranks_;         // those ranks
    std::vector<std::uint32_t> refusing_;            // ranks whose tasks were refused since memory was given back last
    std::vector<std::uint32_t> first_of_;  // a tournament of ranks: of each subtree the first with the least next task
    std::vector<std::uint64_t> refused_at_;  // per task: relief + 1 when memory refused it; 0: never
    std::uint64_t seen_relief_ = 0;

private:
    // The earlier of two neighbours' winners; UINT32_MAX: there is none.
    std::uint32_t winner(std::uint32_t left, std::uint32_t right) const {
        if (right == UINT32_MAX) return left;
        if (left == UINT32_MAX) return right;
        return next_task_[right].time < next_task_[left].time ? right : left;
    }

    void play_again(std::uint32_t rank) {
        std::size_t node = first_of_.size() / 2 + rank;
        first_of_[node] = rank;
        for (node /= 2; node > 0; node /= 2) first_of_[node] = winner(first_of_[2 * node], first_of_[2 * node + 1]);
    }
};

}  // namespace pipeweaver::search
