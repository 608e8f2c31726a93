// Several searches over staggered pipelines at once, each a slot of the engine's rounds.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "search/improve/stagger.hpp"
#include "search/instance/candidate.hpp"

namespace pipeweaver::search {

class StaggerPhase {
public:
    /// `slots` searches, every second one backwards in time where the problem allows it.
    StaggerPhase(const Flat& flat, std::size_t slots, std::span<const std::uint32_t> mode);

    /// One round of `each` steps per slot; the first has the number `first`. Beginnings are drawn within `horizon` ns.
    void round(std::uint64_t seed, std::uint64_t first, std::uint64_t each, std::int64_t horizon,
               const Executor& execute);

    std::size_t size() const { return slots_.size(); }

    /// Per slot, the best schedule since forget(); not valid() before the first round after it.
    const Candidate& best(std::size_t slot) const { return slots_[slot].best; }
    void forget();

private:
    struct Slot {
        const Side* side;
        StaggerSearch search;
        Walk walk;
        Candidate best;
        bool fits = false;
    };

    void step(Slot& slot, Random& random, std::int64_t horizon);

    std::vector<std::unique_ptr<Side>> sides_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> mode_;
};

}  // namespace pipeweaver::search
