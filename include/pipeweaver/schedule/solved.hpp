// A problem with a schedule of it, as they lie side by side in a folder.
#pragma once

#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <filesystem>

namespace pipeweaver::schedule {

struct Solved {
    ProblemFile file;
    Schedule schedule;
};

/// The problem file of a folder: problem.json, or problem.json.gz where that is not there.
[[nodiscard]] std::filesystem::path problem_in(const std::filesystem::path& folder);

/// Reads a solution file and the problem beside it. Throws as read_problem() and read_schedule(), and for a part of a
/// plan's folder as require_whole().
[[nodiscard]] Solved read_solved(const std::filesystem::path& solution);

/// Holds what the solution file claims (starts, makespan, peaks, signature, a bound not above the makespan) against the
/// replay of its schedule. Claims that are absent are passed over. Throws Error{input} naming the first that is wrong.
void check_claims(const std::filesystem::path& path, const Schedule& schedule, const Replay& replay);

}  // namespace pipeweaver::schedule
