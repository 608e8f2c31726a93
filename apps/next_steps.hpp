// What a person does with the files that a command wrote.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::apps {

/// Whom the files are for.
struct MadeFor {
    std::string target = "free";   ///< of planner::targets(): one that has a schedule of its own comes first
    std::size_t microbatches = 0;  ///< of the schedules that targets have of their own
    std::string launched_alone{};  ///< a recomputation of the action lists that pipeweaver.torch does not run, if any
};

/// Lines that say, for what is among the written `files`, where it lies below `out` and how it is opened or loaded.
[[nodiscard]] std::string next_steps(const std::vector<std::filesystem::path>& files, const std::filesystem::path& out,
                                     const MadeFor& made_for = {});

}  // namespace pipeweaver::apps
