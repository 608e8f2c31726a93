// A schedule as the strategies pass it on, and what makes one better than another.
#pragma once

#include "search/instance/incremental_schedule.hpp"

#include <optional>

namespace pipeweaver::search {

struct Candidate {
    std::vector<std::uint32_t> sequence;  ///< topological for edges and ranks' orders together
    std::vector<std::uint32_t> mode;      ///< per pair
    Energy energy;

    bool valid() const { return !sequence.empty(); }
};

/// Smaller makespan, then smaller sum of ends. Among equals the one met first stays.
inline bool better(const Energy& a, const Energy& b) {
    return a.makespan != b.makespan ? a.makespan < b.makespan : a.ends < b.ends;
}
inline bool better(const Candidate& a, const Candidate& b) {
    return a.valid() && (!b.valid() || better(a.energy, b.energy));
}

/// Where an incremental schedule stands.
inline void store(const IncrementalSchedule& current, Candidate& candidate) {
    candidate.sequence = current.sequence();
    candidate.mode = current.mode();
    candidate.energy = current.energy();
}

/// The schedule as a sequence; none if it deadlocks or breaks the rules in `flat`. Memory is not looked at.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> sequence_of(const Flat& flat,
                                                                    const schedule::Schedule& schedule);

}  // namespace pipeweaver::search
