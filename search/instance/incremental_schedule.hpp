// A schedule that is changed step by step: one task moved on its rank, one pair put into another memory mode. Each
// step is checked (memory, cycle), timed where it changes something, and kept or taken back.
//
//   makespan 8                              propose_before(F1, B0): 6
//     rank 0  |F0 .. .. B0 F1 .. .. B1|       rank 0  |F0 F1 .. B0 .. B1|
//     rank 1  |.. F0 B0 .. .. F1 B1 ..|       rank 1  |.. F0 B0 F1 B1 ..|
//
// Memory       never exceeded, never below base: a step is refused by the prefix sums of its rank before it is timed.
// Allocation   none after construction.
// Threads      one IncrementalSchedule per thread at a time.
#pragma once

#include "search/instance/critical_path.hpp"

namespace pipeweaver::search {

class IncrementalSchedule {
public:
    explicit IncrementalSchedule(const Flat& flat);

    /// Pre: `sequence` is topological for edges and ranks' orders, and the schedule keeps every rank's memory.
    void load(std::span<const std::uint32_t> sequence, std::span<const std::uint32_t> mode);

    /// Takes over the other's schedule. Pre: the same Flat.
    void copy(const IncrementalSchedule& other);

    const std::vector<std::uint32_t>& sequence() const { return order_.sequence(); }
    const std::vector<std::uint32_t>& mode() const { return mode_; }
    const Energy& energy() const { return timing_.energy(); }
    std::int64_t end(std::uint32_t task) const { return timing_.end(task); }
    std::int64_t start(std::uint32_t task) const { return timing_.start(task); }
    /// Longest path from the task's end to the end of the step. Pre: no proposal is pending.
    std::int64_t tail(std::uint32_t task) {
        timing_.begin_step(order_);
        return timing_.tail(task);
    }
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
    const std::vector<std::uint32_t>& critical() { return critical_.tasks(order_, timing_); }

    static constexpr std::uint32_t no_task = UINT32_MAX;

    /// The task `distance` places before (negative) or after on the same rank, or no_task.
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
    enum class Step : std::uint8_t { none, move, modes };

    void fill_memory();
    bool fits_moved_before(std::uint32_t from, std::uint32_t to) const;
    bool fits_moved_after(std::uint32_t from, std::uint32_t to) const;
    bool finish_move(std::int64_t limit);
    void undo_move();
    void set_mode(std::uint32_t pair, std::uint32_t mode);
    void undo_modes();
    bool refill_memory(std::uint32_t first, std::uint32_t last);
    bool spread_modes(std::int64_t limit);

    const Flat& flat_;
    unsigned shift_ = 0;
    TaskOrder order_;
    Timing timing_;
    CriticalPath critical_;
    std::vector<std::int64_t> used_;  // per spot: memory above base before the task
    std::vector<Cost> cost_;
    std::vector<std::uint32_t> mode_;

    // The step proposed.
    Step step_ = Step::none;
    ModeChange old_modes_[2] = {};
    std::size_t changed_modes_ = 0;
    std::uint32_t first_spot_ = 0, last_spot_ = 0;  // whose memory the modes changed
    std::vector<std::uint32_t> retimed_;            // tasks of which they changed the duration
};

}  // namespace pipeweaver::search
