// Small random schedule problems, and the optimum of tiny ones by trying everything.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "tests/support/random_problem.hpp"

#include <optional>

namespace pipeweaver::search_tests {

using testing::Shape;

/// The n-th of a row of small shapes, 1 to 4 ranks and 1 to 6 stages, with and without all that a Shape may have;
/// capped.
Shape shape_in_turn(std::uint64_t number);

/// The n-th of a row of shapes of 3 ranks, 4 microbatches and 6 stages, with and without splits, modes, items,
/// capacity.
Shape three_ranks_in_turn(std::uint64_t number);

/// The n-th problem of a shape. It passes schedule::validate(), but no schedule of it need fit.
schedule::Problem random_problem(const Shape& shape, std::uint64_t number);

/// The problem with so little room that modes are left out: on its ranks in turn what the pair that needs most needs in
/// its most frugal mode, that and `more` bytes, and no capacity at all.
schedule::Problem with_little_room(schedule::Problem problem, std::int64_t more);

/// The smallest makespan of all schedules and modes that fit; nothing if none does. Pre: a dozen tasks at most.
std::optional<Duration> best_by_force(const schedule::Problem& problem);

}  // namespace pipeweaver::search_tests
