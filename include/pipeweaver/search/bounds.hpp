// Lower bounds on the makespan: numbers that no schedule of a problem can beat.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <string>
#include <vector>

namespace pipeweaver::search {

/// How much work the bounds may take.
enum class BoundEffort {
    full,   ///< every bound the module knows
    quick,  ///< critical path and rank work alone, which take linear time: for many problems and few answers
};

struct Bound {
    std::string name;  ///< "critical path", "rank work", ...
    Duration value{};
};

/// Every bound the module knows, in a fixed order, each with the smallest duration of a task over its modes, those that
/// its rank has no room for left out.
[[nodiscard]] std::vector<Bound> lower_bounds(const schedule::Replayer& replayer);

/// The largest of the bounds that the effort allows.
[[nodiscard]] Bound best_bound(const schedule::Replayer& replayer, BoundEffort effort = BoundEffort::full);

}  // namespace pipeweaver::search
