// A schedule that is changed step by step: one task moved on its rank, one pair put into another memory mode. Each
// step is checked (cycle, memory), timed from the first task it can touch, and kept or taken back.
//
// The schedule is a *sequence* of all tasks that is topological for edges and ranks' orders together, so timing is one
// pass without a queue. A step reorders the window of the sequence between the two tasks it concerns (as in D. J.
// Pearce and P. H. J. Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", JEA 11, 2006);
// what lies before the window keeps its times.
//
// Memory       never exceeded, never below base: a step is refused by the prefix sums of its rank before it is timed.
// Allocation   none after construction.
// Threads      one Walk per thread at a time.
#pragma once

#include "search/flat.hpp"

namespace pipeweaver::search {

/// What is to be made small: the makespan first. Makespans alone lie on plateaus, so ends of all tasks count, too.
struct Energy {
    std::int64_t makespan = 0;
    std::int64_t ends = 0;  ///< sum of all tasks' ends, in units of 2^Walk::shift() ns
};

class Walk {
public:
    explicit Walk(const Flat& flat);

    /// Pre: `sequence` is topological for edges and ranks' orders, and the schedule keeps every rank's memory.
    void load(std::span<const std::uint32_t> sequence, std::span<const std::uint32_t> mode);

    /// Takes over the other's schedule. Pre: the same Flat.
    void copy(const Walk& other);

    const std::vector<std::uint32_t>& sequence() const { return sequence_; }
    const std::vector<std::uint32_t>& mode() const { return mode_; }
    const Energy& energy() const { return energy_; }
    std::int64_t end(std::uint32_t task) const { return end_[task]; }
    std::int64_t start(std::uint32_t task) const { return end_[task] - cost_[task].duration; }
    unsigned shift() const { return shift_; }

    /// One number for the energy: makespan + weight * average end.
    double value(const Energy& energy, double weight) const;

    // A step is proposed and then kept or taken back; in between, energy() is of the proposal. A step that is refused
    // (false) has changed nothing. `limit`: a makespan beyond which the caller would not keep it; also refused.

    /// Moves `task` before (after) `other`, which precedes (follows) it on their rank.
    bool propose_before(std::uint32_t task, std::uint32_t other, std::int64_t limit);
    bool propose_after(std::uint32_t task, std::uint32_t other, std::int64_t limit);

    /// Puts pairs of one rank into other modes. Pre: at most two different pairs.
    struct ModeChange {
        std::uint32_t pair, mode;
    };
    bool propose_modes(std::span<const ModeChange> changes, std::int64_t limit);

    void keep();
    void take_back();

    /// Tasks on a longest path that start the moment the task before them on their rank ends: to end sooner, the
    /// schedule must change at one of them. Found again after each kept step.
    const std::vector<std::uint32_t>& critical();

    /// The task `distance` places before (negative) or after on the same rank, or nothing (UINT32_MAX).
    std::uint32_t neighbour(std::uint32_t task, std::int64_t distance) const;

    /// Memory of a rank above its base along its order: at its largest, and at tasks' starts on average.
    struct Levels {
        std::int64_t peak = 0;
        double average = 0;
    };
    Levels levels(std::uint32_t rank) const;

    /// Pairs on the rank of `pair` whose forward-to-last span overlaps that of `pair` in the rank's order.
    bool overlap(std::uint32_t pair, std::uint32_t other) const;

private:
    enum class Step : std::uint8_t { none, before, after, modes };

    void fill_rows();
    bool fits_moved_before(std::uint32_t from, std::uint32_t to) const;
    bool fits_moved_after(std::uint32_t from, std::uint32_t to) const;
    void shift_row(std::uint32_t from, std::uint32_t to);
    void next_stamp();
    bool mark_ancestors(std::uint32_t task, std::uint32_t first, std::uint32_t last);
    bool mark_descendants(std::uint32_t task, std::uint32_t first, std::uint32_t last);
    void reorder(std::uint32_t first, std::uint32_t last, bool marked_first);
    void restore_window();
    bool finish_move(Step step, std::uint32_t from, std::uint32_t to, std::int64_t limit);
    void set_mode(std::uint32_t pair, std::uint32_t mode);
    bool refill_memory(std::uint32_t first, std::uint32_t last);
    bool evaluate(std::uint32_t from, std::int64_t limit);
    void restore_ends();
    std::int64_t makespan() const;

    const Flat& flat_;
    Groups<Arc> before_;  // as in Flat, less what the order on a rank implies: arcs without lag inside a rank
    unsigned shift_ = 0;
    std::vector<std::uint32_t> first_;  // per rank: where its row begins in row_; one more at the end

    std::vector<std::uint32_t> sequence_, at_;  // all tasks; per task: its place there
    std::vector<std::uint32_t> row_, spot_;     // ranks' orders one after the other; per task: its place there
    std::vector<std::uint32_t> previous_;       // per task: the one before it on its rank, or tasks() = none
    std::vector<std::int64_t> used_;            // per spot: memory above base before the task
    std::vector<Cost> cost_;
    std::vector<std::uint32_t> mode_;
    std::vector<std::int64_t> end_;  // per task, and 0 for "none"
    Energy energy_;
    std::vector<std::uint32_t> critical_;
    bool critical_known_ = false;

    // What take_back() needs.
    Step step_ = Step::none;
    std::uint32_t step_from_ = 0, step_to_ = 0;
    std::uint32_t window_first_ = 0, window_last_ = 0;
    std::vector<std::uint32_t> window_;  // the window of the sequence as it was
    std::uint32_t timed_first_ = 0, timed_last_ = 0;
    std::vector<std::int64_t> old_end_;  // per place in the sequence
    Energy old_energy_;
    ModeChange old_modes_[2] = {};
    std::size_t changed_modes_ = 0;

    std::vector<std::uint32_t> mark_, scratch_;
    std::uint32_t stamp_ = 0;
};

}  // namespace pipeweaver::search
