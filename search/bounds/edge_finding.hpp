// Heads and tails tightened by what one-machine bounds decide, for schedules of a limited makespan.
//
// Edge finding   On one rank let S be a set of tasks with the earliest head r, work p, and latest end D = limit - tail
//                in S, and i another task of the rank. If r' + p + work(i) > D, r' the earliest head of S and i, then i
//                cannot run before or among S: it follows all of them, and its head is at least the largest
//                head + work over subsets of S. If S alone has r + p > D, nothing ends by the limit. The same holds
//                with time reversed, for tails. J. Carlier, E. Pinson, "An algorithm for solving the job-shop problem",
//                Management Science 35 (1989); in O(n^2) by W. Nuijten, as in P. Baptiste, C. Le Pape, W. Nuijten,
//                "Constraint-Based Scheduling" (2001), 2.1.4.
// Fixed point    Raised heads and tails are carried along the arcs, and all begins again until nothing changes.
// Destructive    If no schedule ends by T, T + 1 is a bound; the largest such T is searched for.
#pragma once

#include "search/bounds/one_machine.hpp"

#include <cstdint>

namespace pipeweaver::search {

/// Raises heads and tails to what they must be in schedules with a makespan of `limit` at most, until nothing changes
/// or `work` is used up (units of some ns, taken from it). False: no such schedule exists. Pre: `windows` are valid.
[[nodiscard]] bool tighten_for(const Flat& flat, std::int64_t limit, Tightened& windows, std::uint64_t& work);

/// The largest bound that tighten_for() proves with this work, not below `bound`; to a 65536th of it. `bound` itself
/// where a rank has so many tasks that it would take more by itself.
[[nodiscard]] std::int64_t edge_finding_bound(const Flat& flat, const Tightened& windows, std::int64_t bound,
                                              std::uint64_t work);

}  // namespace pipeweaver::search
