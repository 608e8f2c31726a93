// Search over priorities of groups: all forwards, or all backwards, of one module's item in one microbatch. A list
// scheduler turns priorities into a schedule, so that one change moves many tasks at once, on all ranks.
//
//   keys F0 0, F1 1024, F2 2048       the key of F2 becomes 500
//     rank 0  |F0 F1 F2 ..|             rank 0  |F0 F2 F1 ..|
//     rank 1  |.. F0 F1 F2|             rank 1  |.. F0 F2 F1|
//
// Where pairs have modes, those of a microbatch's module, or of one item, change theirs together: one microbatch that
// is recomputed whole lets another one begin, where a few of its passes would not.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "search/construct/dispatch.hpp"
#include "search/instance/candidate.hpp"
#include "search/instance/task_groups.hpp"

namespace pipeweaver::search {

/// A point of the search: one key per group, of which the smaller runs first, ties by group; and a mode per pair.
struct GroupPoint {
    Choice choice = Choice::dual_queue;
    std::vector<std::int64_t> key;
    std::vector<std::uint32_t> mode;
};

class GroupSearch {
public:
    GroupSearch(const Flat& flat, const TaskGroups& groups);

    std::optional<Shortage> prepare(std::span<const std::uint32_t> mode);

    /// Groups in the order in which `place` has their first tasks, the modes as they are. Pre: prepare() found nothing
    /// short; so for all that follow.
    void start(Choice choice, std::span<const std::uint32_t> place);

    /// The same under these modes. False if they leave no order known to be safe; then nothing has changed.
    bool start(Choice choice, std::span<const std::uint32_t> place, std::span<const std::uint32_t> mode);

    /// Schedules by where it stands.
    std::int64_t evaluate();

    /// Changes keys or modes at random, schedules, and keeps the change unless the makespan grows. The schedule made is
    /// in sequence() and mode(); its makespan is returned, INT64_MAX if none was made.
    std::int64_t step(Random& random);

    const std::vector<std::uint32_t>& sequence() const { return dispatcher_.sequence(); }
    const std::vector<std::uint32_t>& mode() const { return made_under_; }

    const GroupPoint& point() const { return point_; }
    std::int64_t makespan() const { return makespan_; }  ///< of this point; INT64_MAX before it was scheduled
    /// Goes on from this point, or from where another search of the same problem stands.
    void take(const GroupPoint& point);
    void follow(const GroupSearch& other);

private:
    void change_keys(Random& random);
    bool change_modes(Random& random);
    void shift_kind(std::int64_t by, Random& random);
    void stand_on(const GroupPoint& point);

    const Flat& flat_;
    const TaskGroups& groups_;
    PairGroups pairs_;
    Dispatcher dispatcher_;
    GroupPoint point_, old_;
    std::vector<std::uint32_t> made_under_;
    std::int64_t makespan_ = INT64_MAX;
    std::vector<std::uint32_t> order_, position_, line_;
};

}  // namespace pipeweaver::search
