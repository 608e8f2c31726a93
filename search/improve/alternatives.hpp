// Different good schedules, kept while a search runs: what it hands over beside the best one.
//
// A *line* is where schedules come from: an initial schedule, a slot of one phase or cycle. Of a line only the best one
// is kept, so that alternatives are results of different searches and not the last steps of one.
// Determinism  a function of what is offered, in this order.
#pragma once

#include "pipeweaver/search/found.hpp"
#include "pipeweaver/search/options.hpp"
#include "search/instance/candidate.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::search {

class Alternatives {
public:
    Alternatives(const Flat& flat, const AlternativesWanted& wanted) : flat_(flat), wanted_(wanted) {}

    /// Keeps the candidate if it is near enough to the best and differs from all others; it takes the place of a worse
    /// one of the same line.
    void offer(std::uint64_t line, const Candidate& candidate, std::string_view who);

    /// Without `best`, smallest makespan first; at most wanted.most, within wanted.within of `best`.
    std::vector<FoundSchedule> others(const Candidate& best) const;

private:
    struct Entry {
        std::uint64_t line = 0;
        Candidate candidate;
        std::string who;
    };
    /// The largest makespan that is near to this one.
    std::int64_t limit(std::int64_t makespan) const;
    bool same(const Candidate& a, const Candidate& b) const;

    const Flat& flat_;
    AlternativesWanted wanted_;
    std::vector<Entry> entries_;  // best first, among equals the one met first
};

}  // namespace pipeweaver::search
