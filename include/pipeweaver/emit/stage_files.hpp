// A plan from measured stage times as files, as JSON and as a table.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/planner/stage_plan.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::emit {

/// problem.json.gz, solution.json, trace.json.gz, report.html and, of each target that has a schedule of its own, its
/// folder. Equal plans give equal bytes.
[[nodiscard]] std::vector<FileToWrite> stage_files(const planner::StageRequest& request, const planner::StagePlan& plan,
                                                   const std::filesystem::path& folder);

/// The answer for machines, a JSON object; docs/your-own-stage-times.md names its keys.
[[nodiscard]] nlohmann::ordered_json stage_json(const planner::StagePlan& plan);

/// The answer for a person: the solution as solution_table() has it, every policy with time, bound and gap, and
/// the schedules that targets have of their own.
[[nodiscard]] std::string stage_table(const planner::StagePlan& plan);

}  // namespace pipeweaver::emit
