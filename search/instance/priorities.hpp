// Orders of all tasks by simple rules: what list schedules and searches over priorities begin with.
#pragma once

#include "search/instance/flat.hpp"

#include <string>

namespace pipeweaver::search {

struct Priority {
    std::string name;
    std::vector<std::uint32_t> position;  ///< per task; smaller runs first
};

/// in order        a microbatch at a time
/// critical path   longest path to the end first; a forward's includes its microbatch's backwards
/// short first     microbatches with little work first, their backwards last; no backward before a forward
/// long first      the other way round
/// breadth first   a segment of all microbatches at a time; no backward before a forward
[[nodiscard]] std::vector<Priority> priorities(const Flat& flat);

/// Per task: its stage's place among the stages of its rank, by number; 0 where stages are not said.
[[nodiscard]] std::vector<std::uint32_t> segments_of(const Flat& flat);

}  // namespace pipeweaver::search
