// Large steps: the schedule is built anew with some tasks' times wished otherwise. What single steps cannot reach where
// memory is short: whole microbatches that change places, or begin earlier or later, on all ranks at once.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "search/construct/dispatch.hpp"
#include "search/improve/group_search.hpp"
#include "search/instance/candidate.hpp"

namespace pipeweaver::search {

class Rebuild {
public:
    Rebuild(const Flat& flat, const TaskGroups& groups);

    /// Wishes random changes of the walk's start times and schedules by them, under the walk's modes; the result is in
    /// sequence(). False if the modes leave no safe order (the walk's own may be none).
    bool propose(const Walk& walk, Random& random);

    const std::vector<std::uint32_t>& sequence() const { return dispatcher_.sequence(); }
    std::int64_t makespan() const { return dispatcher_.makespan(); }

private:
    void wish(const Walk& walk, Random& random);
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
