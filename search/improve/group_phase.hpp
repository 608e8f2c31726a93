// The engine's first phase: several searches over group priorities at once.
#pragma once

#include "search/improve/group_search.hpp"
#include "search/improve/phase.hpp"

namespace pipeweaver::search {

class GroupPhase : public Phase<GroupSearch> {
public:
    using Phase::Phase;

    /// Each slot begins with one of the best of all priorities and ways to choose; of those spread over them that
    /// `work` tasks scheduled in each direction allow, one at least.
    /// Returns the number of schedules made. Called once, before the first round.
    std::uint64_t begin(std::uint64_t work, const Executor& execute);

    /// The worse half of the slots of a direction goes on from where the better half stands.
    void follow_the_better();

    /// Every second slot of a direction goes on from this schedule, where its modes are known to leave safe orders.
    void go_on_from(const Candidate& schedule);
};

}  // namespace pipeweaver::search
