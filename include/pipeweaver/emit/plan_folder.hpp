// A plan's folder: written whole, and emitted from without planning again.
//
//   plan.json  assignment.json  launch.json  run.json  report.html
//   replica-000/  problem.json.gz  solution.json  actions.json  trace.json.gz
//   torch/        problem.json.gz  solution.json  schedule.csv  schedule.json  padding.json   (of a target's own)
//   megatron/     megatron.sh  megatron.yaml                                      (how its target launches a rung)
//
// A plan from stage times has no plan.json and no replicas: its one problem lies at the top.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/planner/stage_plan.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emit {

/// run.json ("pipeweaver-run/1"): what was measured while a plan was made, on the machine `host`.
[[nodiscard]] nlohmann::ordered_json run_json(const planner::SearchLimits& limits, double seconds,
                                              const std::string& host);

/// What is written last, since it says something of the others.
struct WholeFiles {
    std::string plan;        ///< plan.json, without the hashes of the other files
    std::string assignment;  ///< assignment.json
};

/// Ends a plan's folder: adds assignment.json, and plan.json with the hashes of all other files but run.json, and
/// renames all, plan.json last. Replicas that an older plan of some replicas has there stay, with their part of
/// assignment.json, where the same was asked for, over the same partition; what else an older plan left is removed.
/// Returns the files written, sorted. Several processes may end plans in one folder at once. Throws Error{io}.
std::vector<std::filesystem::path> finish_plan(PendingFiles& pending, const std::filesystem::path& folder,
                                               const WholeFiles& whole);

/// Writes a plan's files, those of a replica as soon as it is planned. Nothing has its name before finish(); what was
/// written is removed again where that is not reached. Throws Error{io}.
class PlanWriter {
public:
    /// Pre: job and batch outlive it.
    PlanWriter(const planner::Job& job, const planner::Batch& batch, std::filesystem::path folder);

    /// May be called from several threads.
    void add(const planner::ReplicaPlan& replica);

    /// Adds the files that are of all replicas together. Pre: all replicas were added.
    void add_rest(const planner::Plan& plan, const Executor& execute);

    /// Adds `run`, and removes what an older plan left in the folder; files of others stay. Returns the files written,
    /// sorted.
    std::vector<std::filesystem::path> finish(const nlohmann::ordered_json& run);

private:
    const planner::Job& job_;
    const planner::Batch& batch_;
    std::filesystem::path folder_;
    std::once_flag totalled_;
    LossTotals losses_;
    PendingFiles pending_;
    WholeFiles whole_;
};

/// Writes the files of a plan that another process made, plan.json among them, as finish_plan() does.
std::vector<std::filesystem::path> write_plan_files(const std::vector<FileToWrite>& files,
                                                    const std::filesystem::path& folder);

/// Writes the whole folder of a plan at once, as a PlanWriter does: all replicas, what is of them together, and `run`.
/// Returns the files written, sorted. Throws Error{io}.
std::vector<std::filesystem::path> write_plan_folder(const planner::Job& job, const planner::Batch& batch,
                                                     const planner::Plan& plan, const std::filesystem::path& folder,
                                                     const nlohmann::ordered_json& run, const Executor& execute);

/// Writes the whole folder of a plan from stage times. Returns the files written, sorted. Throws Error{io}.
std::vector<std::filesystem::path> write_plan_folder(const planner::StageRequest& request,
                                                     const planner::StagePlan& plan,
                                                     const std::filesystem::path& folder,
                                                     const nlohmann::ordered_json& run);

/// Makes the target's files below `out`. `source` is a plan folder (torch-csv takes its torch/, targets of launches its
/// launch.json, the others its replicas) or a folder with problem.json[.gz] and solution.json. Throws Error{input} for
/// an unknown target (the nearest is named) or damaged files, Error{io} for missing ones, Error{limit} with rule and
/// task for what the target cannot express.
[[nodiscard]] std::vector<FileToWrite> emit(const std::filesystem::path& source, std::string_view target,
                                            const std::filesystem::path& out);

}  // namespace pipeweaver::emit
