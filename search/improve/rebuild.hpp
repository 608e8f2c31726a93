// Large steps: some tasks get other wished start times, and the schedule is built again by them. They reach what single
// steps cannot where memory is short: whole microbatches that change places, or begin earlier or later, on all ranks at
// once.
//
//   starts 0 1 2 and 1 2 3       F2 wished 1.5 earlier: 0 1 0.5 and 1 2 1.5
//     rank 0  |F0 F1 F2 ..|        rank 0  |F0 F2 F1 ..|
//     rank 1  |.. F0 F1 F2|        rank 1  |.. F0 F2 F1|
#pragma once

#include "pipeweaver/base/random.hpp"
#include "search/construct/dispatch.hpp"
#include "search/instance/incremental_schedule.hpp"
#include "search/instance/task_groups.hpp"

namespace pipeweaver::search {

class Rebuild {
public:
    Rebuild(const Flat& flat, const TaskGroups& groups);

    /// Changes wished start times at random, from those of `current`, and schedules by them, under its modes; the
    /// result is in sequence(). False if the modes leave no order known to be safe (that of `current` need not be).
    bool propose(const IncrementalSchedule& current, Random& random);

    const std::vector<std::uint32_t>& sequence() const { return dispatcher_.sequence(); }
    std::int64_t makespan() const { return dispatcher_.makespan(); }

private:
    void wish(const IncrementalSchedule& current, Random& random);
    void shift(std::span<const std::uint32_t> tasks, std::int64_t by);
    void exchange(std::uint32_t microbatch, std::uint32_t other);
    void shake(std::int64_t from, std::int64_t length, Random& random);

    const Flat& flat_;
    const TaskGroups& groups_;
    Dispatcher dispatcher_;
    std::vector<std::uint32_t> mode_;  // under which the dispatcher is prepared
    bool prepared_ = false, fits_ = false;
    std::vector<std::int64_t> key_;
};

}  // namespace pipeweaver::search
