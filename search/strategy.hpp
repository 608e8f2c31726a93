// A way to look for schedules: what the one loop of search.cpp drives until it has to stop.
//
// A new strategy is a class of this kind in a file of its own, and a row in the table of search.cpp.
// Determinism  best(), bound(), rounds() and evaluations() are a function of (problem, options, calls of round()),
//              whatever the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/found.hpp"
#include "search/instance/candidate.hpp"

#include <string>
#include <vector>

namespace pipeweaver::search {

class Strategy {
public:
    Strategy() = default;
    Strategy(const Strategy&) = delete;
    Strategy& operator=(const Strategy&) = delete;
    virtual ~Strategy() = default;

    /// Round 0: the schedules that the caller gave, and what else it begins with. Called once, before all others.
    virtual void start(const Executor& execute) = 0;

    /// One more round, about 10 ms at most.
    virtual void round(const Executor& execute) = 0;

    /// Another round would change nothing.
    virtual bool exhausted() const = 0;

    /// The best schedule so far; not valid() as long as none that fits was found.
    virtual const Candidate& best() const = 0;
    virtual const std::string& found_by() const = 0;

    /// Which part of the strategy's problem did not fit. Pre: best() is not valid.
    virtual std::string why_not() const = 0;

    /// No schedule has a smaller makespan. The search is over when best() meets it.
    virtual const Bound& bound() const = 0;

    virtual std::uint64_t rounds() const = 0;
    virtual std::uint64_t evaluations() const = 0;

    /// What Options::alternatives asked for.
    virtual std::vector<FoundSchedule> alternatives() const { return {}; }
};

}  // namespace pipeweaver::search
