// Schedules built a whole microbatch at a time: each task goes into the first gap on its rank that is long enough,
// between tasks that keep their times.
//
//   placed first, as if it were alone        then a shorter one, in the gaps
//     rank 0  |aa....AA|                       rank 0  |aab...AAB|
//     rank 1  |..aaAA..|                       rank 1  |..aaAAbB.|
//
// So a pipeline that must not wait does not, and the others fill its bubbles. A scheduler that builds in the order of
// time cannot do that: it begins a long task of one model a moment before a task of the other arrives.
//
// Memory    depends on a rank's order alone: its prefix sums are looked at when a microbatch is placed. Where they
//           exceed the rank's room, the task that took too much is put off until another microbatch gives some back,
//           and the microbatch is placed again.
// Gives up  after a number of attempts, or where nothing is given back: another order of microbatches may do.
#pragma once

#include "search/instance/task_groups.hpp"

namespace pipeweaver::search {

class GapFilling {
public:
    GapFilling(const Flat& flat, const TaskGroups& groups);

    /// Are all edges inside microbatches, and tasks not too many? Else nothing below may be called.
    bool suits() const { return suits_; }

    void set_costs(std::span<const Cost> costs) { costs_.assign(costs.begin(), costs.end()); }

    /// Places the microbatches in this order, no task before its moment in `release` (ns). False if it gave up.
    bool run(std::span<const std::uint32_t> microbatches, std::span<const std::int64_t> release);

    /// Of the last run, if it did not give up: a topological order of edges and ranks' orders together.
    const std::vector<std::uint32_t>& sequence() const { return sequence_; }
    std::int64_t makespan() const { return makespan_; }

private:
    struct Busy {
        std::int64_t begin = 0, end = 0;
        std::uint32_t task = 0;
    };

    /// How a rank's memory stands after a microbatch was placed.
    enum class Fit : std::uint8_t { fits, put_off, never };

    bool place(std::uint32_t microbatch);
    void insert(std::uint32_t task);
    void remove(std::uint32_t microbatch);
    Fit fit(std::uint32_t microbatch, std::uint32_t rank);
    bool put_off(std::uint32_t taker);

    const Flat& flat_;
    std::vector<std::uint32_t> topological_place_;           // per task
    std::vector<std::vector<std::uint32_t>> tasks_, ranks_;  // per microbatch, the tasks in topological order
    std::vector<std::uint32_t> microbatch_of_;               // per task
    bool suits_ = true;
    std::vector<Cost> costs_;
    std::vector<std::vector<Busy>> row_;          // per rank, by time
    std::vector<std::int64_t> end_, not_before_;  // per task
    std::vector<std::uint32_t> sequence_;
    std::int64_t makespan_ = 0;
    std::size_t attempts_left_ = 0;
};

}  // namespace pipeweaver::search
