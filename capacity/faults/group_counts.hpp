// Distributions of numbers of groups: sums of independent ones, and parts of them added up.
#pragma once

#include "pipeweaver/capacity/faults.hpp"

#include <optional>

namespace pipeweaver::capacity {

/// Of one node: free or not.
[[nodiscard]] GroupCounts of_one_node(double faulty);

/// Of the sum of `times` independent numbers, each distributed as `one`. Pre: times >= 0.
[[nodiscard]] GroupCounts power(const GroupCounts& one, std::int64_t times);

/// Of the sum of two independent numbers.
[[nodiscard]] GroupCounts sum_of(const GroupCounts& a, const GroupCounts& b);

/// Adds `factor` times the probabilities of `from`, each of a number larger by `more`.
void add_scaled(GroupCounts& into, const GroupCounts& from, double factor, std::int64_t more);

/// Leaves out what cannot change a result at both ends.
void trim(GroupCounts& counts);

/// How many groups a ring of nodes has: exact; nothing where a walk around it has too many states to be taken in a
/// second or two. Pre: a ring, answerable.
[[nodiscard]] std::optional<GroupCounts> groups_of_ring(const FaultCase& asked);

}  // namespace pipeweaver::capacity
