// What a caller asks of a search.
#pragma once

#include "pipeweaver/schedule/solution.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/rules.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::search {

/// Which schedules to hand over beside the best.
struct AlternativesWanted {
    std::size_t most = 0;  ///< the most to hand over; 0: none
    double within = 0;     ///< how much longer than the best makespan theirs may be, as a fraction of it
};

/// In a problem of more tasks a schedule takes tenths of a second: the most promising initial schedules come first,
/// bounds that take long come when all of those were tried, and where time is short no policy is tried before the
/// search's first schedule.
inline constexpr std::size_t most_tasks_at_leisure = 10'000;

/// When a search ends by itself, because more rounds would gain little. One that has found no schedule ends when its
/// strategy gives up.
struct Patience {
    std::uint64_t rounds = 0;  ///< so many with less than `gain` together are enough,
    double share = 0;          ///< if they are this share of all rounds, too: annealing's cycles grow longer
    double gain = 0;           ///< a part of the makespan
    double gap = 0;            ///< and so is a gap that is no larger than this
};

struct Options {
    std::string strategy = "default";
    std::uint64_t seed = 1;
    std::optional<std::uint64_t>
        max_rounds;  ///< exactly so many; none: until `patience` or `keep_going` ends the search
    Rules rules;
    std::vector<schedule::Schedule> starts;  ///< schedules to begin with; those that do not run are ignored
    AlternativesWanted alternatives;         ///< changes nothing of the search
    /// Which bounds are made before the first round; quick ones are never raised, and prove optimal less often.
    BoundEffort bounds = BoundEffort::full;
    /// `starts` has what every policy makes of the problem, where it applies: they need not be tried again.
    bool starts_have_policies = false;
    std::optional<Patience> patience;  ///< of a search without `max_rounds`; none: it goes on until it is told to end
};

/// How many rounds a search runs that has none of `max_rounds`, `patience` and `keep_going`.
inline constexpr std::uint64_t default_rounds = 200;

/// Problems of more tasks get the best of the initial schedules and no rounds: a round would take seconds.
inline constexpr std::uint32_t most_tasks_in_rounds = 50'000;

}  // namespace pipeweaver::search
