// A schedule as a command line names it: a problem file with its solution, or the folder of a plan.
#pragma once

#include "pipeweaver/schedule/solved.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace pipeweaver::apps {

struct ScheduleFiles {
    std::string problem;       ///< the problem's file, or the folder
    std::string solution;      ///< empty beside a folder
    std::int64_t replica = 0;  ///< of a folder

    /// Whether `problem` is a folder.
    [[nodiscard]] bool is_folder() const;

    [[nodiscard]] std::filesystem::path solution_file() const;

    /// Throws Error{input} where a solution is named beside a folder or missing beside a file, and as read_problem(),
    /// read_schedule() and read_solved().
    [[nodiscard]] schedule::Solved read() const;

    /// The schedule's replay. Throws Error{limit} where it cannot run, Error{input} where the solution file claims
    /// something else.
    [[nodiscard]] schedule::Replay replay(const schedule::Replayer& replayer, const schedule::Schedule& schedule) const;
};

}  // namespace pipeweaver::apps
