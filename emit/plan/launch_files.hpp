// What a plan's folder has of the rung that flags launch: launch.json, and the files of its target.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/planner/plan.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::emit {

/// Whether the rung is launched in another layout than the plan's, or with encoders that are built otherwise: its
/// samples are then shared out otherwise.
[[nodiscard]] bool has_own_assignment(const planner::Job& job, const planner::Rung& rung);

/// launch.json, an assignment where its layout is another than the plan's, and the files of the rows of targets()
/// that are of the job's target and do not refuse the launch, below `folder`; none: no
/// rung is launched.
[[nodiscard]] std::vector<FileToWrite> launch_files(const planner::Job& job, const planner::Plan& plan,
                                                    const std::filesystem::path& folder);

/// The files of the plan's folder that say the rung, with those of its target; where that refuses the launch, without.
[[nodiscard]] std::vector<std::string> files_of_rung(const planner::Job& job, const planner::Ladder& ladder,
                                                     const planner::Rung& rung);

/// Why a row of the rung's target writes no files: a phrase each.
[[nodiscard]] std::vector<std::string> refused_of_rung(const planner::Job& job, const planner::Ladder& ladder,
                                                       const planner::Rung& rung);

/// What of a plan's folder it may have written: launch.json, and below their folders the files of targets.
void remove_older_launches(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& written);

/// The files of a row that is launched, from the launch.json of `source`. Throws as emit().
[[nodiscard]] std::vector<FileToWrite> emit_launch(const std::filesystem::path& source, const struct Target& target,
                                                   const std::filesystem::path& out);

}  // namespace pipeweaver::emit
