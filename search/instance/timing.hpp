// Start and end of every task of an order, found again after a step only where they change.
//
// A task's *tail* is the longest path from its end to the end of the step under the ranks' orders, as its end is the
// longest path up to there. A step changes ends from the place of its first task on, and tails up to that of its last
// one. Both are followed in order of places, from the tasks whose neighbours or durations the step changed to those
// that depend on them as long as something changes. A task after the last one of the step has the tail it had, so that
// a new end of a task before it says at once how long the schedule becomes at least: most steps that are too long end
// there.
//
// Allocation   none after construction.
#pragma once

#include "search/instance/flat_replay.hpp"
#include "search/instance/place_set.hpp"
#include "search/instance/task_order.hpp"

namespace pipeweaver::search {

class Timing {
public:
    Timing(const Flat& flat, unsigned shift);

    /// All anew: tasks + arcs.
    void load(const TaskOrder& order, std::span<const Cost> costs);

    std::int64_t end(std::uint32_t task) const { return time_[task].end; }
    std::int64_t start(std::uint32_t task) const { return time_[task].end - time_[task].duration; }
    const Energy& energy() const { return energy_; }

    // A step: begin_step(); then touch() for each task whose previous task or duration (set before) is another one;
    // then spread(); then keep() or take_back().

    void begin_step(const TaskOrder& order);

    /// Would the step surely exceed the limit? Told from the rank's own tasks, before the order is changed. Pre: as
    /// TaskOrder::move_before (move_after).
    bool too_long_before(const TaskOrder& order, std::uint32_t task, std::uint32_t other, std::int64_t limit) const;
    bool too_long_after(const TaskOrder& order, std::uint32_t task, std::uint32_t other, std::int64_t limit) const;

    std::int64_t duration(std::uint32_t task) const { return time_[task].duration; }
    void set_duration(std::uint32_t task, std::int64_t duration) { time_[task].duration = duration; }
    void touch(const TaskOrder& order, std::uint32_t task) {
        if (task < tasks_) places_.insert(order.place(task));
    }

    /// All that may have to wait for the task: those before it.
    void touch_before(const TaskOrder& order, std::uint32_t task) {
        touch(order, order.previous(task));
        for (const Arc& arc : flat_->cross_before[task]) touch(order, arc.task);
    }

    /// Which of the old tails may be used while a step spreads.
    struct Reach {
        std::uint32_t last = 0;  ///< those after this place are as they were
        /// Up to it they may be too long, by this much at most; `unlimited`: they are not used.
        std::int64_t shorter_by = unlimited;
    };

    /// Follows the changes. False, with the times of before, if the makespan is beyond the limit.
    bool spread(const TaskOrder& order, const Reach& reach, std::int64_t limit);

    /// The touched tasks, and all that were found to depend on them, lie between these places.
    std::uint32_t first_visited() const { return first_visited_; }
    std::uint32_t last_visited() const { return last_visited_; }

    void take_back();

    /// Pre: touch() for each task whose next task, touch_before() for each whose duration is another one.
    void keep(const TaskOrder& order);

    /// Longest path from the task's end to the end of the step. Pre: begin_step(), and no step is under way.
    std::int64_t tail(std::uint32_t task) const { return time_[task].tail; }

private:
    struct Time {
        std::int64_t end = 0, duration = 0, tail = 0;
    };
    struct Old {
        std::uint32_t task;
        std::int64_t end;
    };

    std::int64_t makespan(const TaskOrder& order) const;
    std::int64_t earliest_start(const TaskOrder& order, std::uint32_t task) const;
    std::int64_t longest_tail(const TaskOrder& order, std::uint32_t task) const;
    std::uint32_t follow_end(const TaskOrder& order, std::uint32_t task, std::int64_t old, std::uint32_t until);
    std::uint32_t follow_tail(const TaskOrder& order, std::uint32_t task, std::int64_t old, std::uint32_t until);
    bool follow_ends(const TaskOrder& order, const Reach& reach, std::int64_t limit);

    const Flat* flat_;
    std::uint32_t tasks_;
    unsigned shift_;
    // Per task; of begin(), which ends at 0; of each rank's end(), which lasts as long as the rank's tail.
    std::vector<Time> time_;
    bool tails_known_ = false;
    Energy energy_, old_energy_;
    PlaceSet places_;
    std::vector<Old> old_;
    std::uint32_t first_visited_ = 0, last_visited_ = 0;
};

}  // namespace pipeweaver::search
