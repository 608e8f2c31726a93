// One state of the exact search (exact_space.hpp) unpacked: the steps it allows, the states they lead to, its bound.
#pragma once

#include "search/exact/exact_space.hpp"

#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace pipeweaver::search {

/// A step: a task is started. `mode` is its pair's, or, of a forward, the first of the class.
struct ExactStep {
    std::uint32_t task = UINT32_MAX;
    std::uint32_t mode = 0;
};

/// A state unpacked: its steps, its bound. One per slot; allocates nothing after construction.
class ExactState {
public:
    explicit ExactState(const ExactSpace& space);

    /// Pre: `record` stays while the state is used. `last` is the step that led to it.
    void load(Record record, ExactStep last);

    /// Steps that memory and the rules allow and that do not end at `limit` or later, what must follow included.
    void steps(std::int64_t limit, std::vector<ExactStep>& out);

    /// Appends the record of the state after the step. Pre: one of steps().
    void append_after(ExactStep step, std::vector<std::uint64_t>& out);

    /// A bound on the makespan of what can come of the state; may stop early at `limit` or more.
    std::int64_t bound(std::int64_t limit);

    /// Sum of the ranks' free times: the less the better among states with one bound.
    std::int64_t lateness() const;

private:
    struct Undecided {
        std::uint32_t pair = 0;
        std::int64_t budget = 0;  // for what this pair and those before it hold
    };
    struct Job {
        std::int64_t head, work, tail;
        std::uint32_t task;
    };

    bool placed(std::uint32_t task) const { return (record_[1 + task / 64] >> (task % 64) & 1) != 0; }
    const Cost& cost(std::uint32_t task, std::uint32_t mode) const { return space_.flat().cost(task, mode); }
    const ExactClass& class_of(std::uint32_t pair) const {
        return space_.classes(pair)[space_.byte(record_, pair) - std::size_t{1}];
    }
    void load_memory();
    void load_tasks(const std::uint64_t* times);
    std::int64_t net(std::uint32_t task) const;
    std::int64_t start(std::uint32_t task) const;
    std::int64_t least_held(std::uint32_t rank) const;
    bool fits(const ExactStep& step) const;
    bool fits_budgets(std::uint32_t pair, std::uint32_t mode) const;
    bool fits_backward(std::uint32_t task, std::uint32_t mode) const;
    bool against_order(std::uint32_t task) const;
    void append_key(const ExactStep& step, std::vector<std::uint64_t>& out);
    void append_times(const ExactStep& step, std::size_t begin, std::vector<std::uint64_t>& out);
    void append_memory(const ExactStep& step, std::vector<std::uint64_t>& out);
    void change_budgets(const ExactStep& step, std::vector<Undecided>& list);
    const ExactClass& class_after(const ExactStep& step, std::uint32_t pair) const;
    void lower_budgets(const ExactStep& step, std::vector<Undecided>& list);
    void decide(const ExactStep& step, std::vector<Undecided>& list) const;
    std::int64_t shortest(std::uint32_t task) const;
    std::optional<std::int64_t> least_extra(std::uint32_t rank, std::int64_t tail);
    std::int64_t choice_bound(std::uint32_t rank, std::int64_t limit);
    std::int64_t machine_bound(std::uint32_t rank, std::int64_t limit);

    const ExactSpace& space_;
    Record record_;
    ExactStep last_;
    std::int64_t last_start_ = 0;
    std::vector<std::int64_t> clock_, fixed_;        // per rank; fixed: memory of all but undecided pairs
    std::vector<std::vector<Undecided>> undecided_;  // per rank, by their forwards' order
    std::vector<Undecided> changed_;
    std::vector<std::int64_t> ready_;     // per task: 0 unless a predecessor is placed
    std::vector<std::uint32_t> waiting_;  // tasks not placed, in topological order
    std::vector<std::uint32_t> open_;     // of them, those whose predecessors are placed, ascending
    std::vector<std::int64_t> head_;
    std::vector<std::vector<Job>> jobs_;  // per rank
    std::vector<std::pair<std::int64_t, std::int64_t>> sums_, fresh_;
    std::array<std::uint64_t, (ExactSpace::most_tasks + 63) / 64> released_{};
    std::vector<std::pair<std::int64_t, std::int64_t>> left_;  // per place of by_tail(): work, tail
};

}  // namespace pipeweaver::search
