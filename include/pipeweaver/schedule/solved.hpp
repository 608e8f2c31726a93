// A problem with a schedule of it, as they lie side by side in a folder.
#pragma once

#include "pipeweaver/schedule/solution.hpp"

#include <filesystem>

namespace pipeweaver::schedule {

struct Solved {
    ProblemFile file;
    Schedule schedule;
};

/// The problem file of a folder: problem.json, or problem.json.gz where that is not there.
[[nodiscard]] std::filesystem::path problem_in(const std::filesystem::path& folder);

/// Reads a solution file and the problem beside it. Throws as read_problem() and read_schedule().
[[nodiscard]] Solved read_solved(const std::filesystem::path& solution);

}  // namespace pipeweaver::schedule
