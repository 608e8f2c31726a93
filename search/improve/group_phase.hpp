// The engine's first phase: several searches over group priorities at once, forwards and backwards in time.
//
// A schedule read backwards is a schedule of the reversed problem. A list scheduler makes its decisions early in time
// well and its last ones badly; on the reversed problem it is the other way round, so both are tried.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "search/improve/group_search.hpp"

namespace pipeweaver::search {

class GroupPhase {
public:
    /// `slots` searches, every second one reversed where the problem allows it.
    GroupPhase(const Flat& flat, std::size_t slots);

    /// Under these modes; each slot begins with one of the best of all priorities and ways to choose.
    /// Returns the number of schedules made.
    std::uint64_t begin(std::span<const std::uint32_t> mode, const Executor& execute);

    /// One round of `each` schedules per slot; the first evaluation has the number `first`.
    void round(std::uint64_t seed, std::uint64_t first, std::uint64_t each, const Executor& execute);

    /// The worse half of the slots of a direction goes on from where the better half stands.
    void follow_the_better();

    std::size_t size() const { return slots_.size(); }

    /// Per slot, the best schedule it has seen; not valid() before the first round.
    const Candidate& best(std::size_t slot) const { return slots_[slot].best; }

private:
    struct Slot {
        Slot(const Flat& forwards, const Side& side_)
            : side(&side_), search(side_.flat, side_.groups), walk(forwards) {}

        const Side* side;
        GroupSearch search;
        Walk walk;
        Candidate best;
        bool fits = false;
    };

    const Side& side_of(std::size_t slot) const { return *sides_[slot % sides_.size()]; }
    void keep_if_better(Slot& slot);

    std::vector<std::unique_ptr<Side>> sides_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> mode_;
};

}  // namespace pipeweaver::search
