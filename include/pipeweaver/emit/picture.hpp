// A schedule as text: a row for each rank, time to the right.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <string>

namespace pipeweaver::emit {

/// `columns` characters wide. The letter is the module's, lower case forward, upper case backward, '+' weight gradient:
/// what takes most of a column's time, all its tasks together. '.' is a column of which the rank waits more than half.
/// A legend follows. Pre: `replay` completed, columns >= 1.
[[nodiscard]] std::string picture(const schedule::Replayer& replayer, const schedule::Schedule& schedule,
                                  const schedule::Replay& replay, std::size_t columns = 100);

}  // namespace pipeweaver::emit
