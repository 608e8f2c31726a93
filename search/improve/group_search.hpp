// Search over priorities of groups: all forwards, or all backwards, of one module's item in one microbatch. A list
// scheduler turns priorities into a schedule, so that one change moves many tasks at once, on all ranks.
//
//   keys F0 0, F1 1024, F2 2048       the key of F2 becomes 500
//     rank 0  |F0 F1 F2 ..|             rank 0  |F0 F2 F1 ..|
//     rank 1  |.. F0 F1 F2|             rank 1  |.. F0 F2 F1|
#pragma once

#include "pipeweaver/base/random.hpp"
#include "search/construct/dispatch.hpp"
#include "search/instance/candidate.hpp"
#include "search/instance/task_groups.hpp"

namespace pipeweaver::search {

/// A point of the search: one key per group. The smaller runs first, ties by group.
struct GroupKeys {
    Choice choice = Choice::dual_queue;
    std::vector<std::int64_t> key;
};

class GroupSearch {
public:
    GroupSearch(const Flat& flat, const TaskGroups& groups);

    std::optional<Shortage> prepare(std::span<const Cost> costs) { return dispatcher_.prepare(costs); }

    /// Groups in the order in which `place` has their first tasks.
    void start(Choice choice, std::span<const std::uint32_t> place);

    /// Schedules by the current keys. Pre: prepare() found nothing short.
    std::int64_t evaluate();

    /// Changes keys at random, schedules, and keeps the change unless the makespan grows. The schedule made is in
    /// sequence(), its makespan is returned.
    std::int64_t step(Random& random);

    const std::vector<std::uint32_t>& sequence() const { return dispatcher_.sequence(); }
    const GroupKeys& keys() const { return keys_; }
    /// Goes on from these keys, or from where another search of the same problem stands.
    void take(const GroupKeys& keys) {
        keys_ = keys;
        makespan_ = INT64_MAX;
    }
    void follow(const GroupSearch& other) {
        keys_ = other.keys_;
        makespan_ = other.makespan_;
    }
    std::int64_t makespan() const { return makespan_; }  ///< of the current keys

private:
    void change(Random& random);
    void shift_kind(std::int64_t by, Random& random);

    const Flat& flat_;
    const TaskGroups& groups_;
    Dispatcher dispatcher_;
    GroupKeys keys_, old_;
    std::int64_t makespan_ = INT64_MAX;
    std::vector<std::uint32_t> order_, position_, line_;
};

}  // namespace pipeweaver::search
