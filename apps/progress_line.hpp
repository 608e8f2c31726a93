// What a command is at, in a line for a terminal.
#pragma once

#include "pipeweaver/planner/doing.hpp"

#include <cstdint>
#include <string>

namespace pipeweaver::apps {

/// "partition 7/29", or "replica 2/4: 40 rounds, 3.91 s, gap 4.0 %"; without a gap where there is no bound.
[[nodiscard]] std::string progress_line(const planner::Doing& doing);

/// "1 round", "40 rounds".
[[nodiscard]] std::string rounds_of(std::uint64_t count);

}  // namespace pipeweaver::apps
