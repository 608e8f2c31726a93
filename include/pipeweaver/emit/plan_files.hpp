// A plan, a plan from measured stage times, a solved problem and a step's needs, as files and as tables.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/needs.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/stage_plan.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emit {

/// What says that a plan's folder is whole, and what its other files are.
inline constexpr std::string_view plan_file = "plan.json";

/// Which samples each replica takes.
inline constexpr std::string_view assignment_file = "assignment.json";

/// The same of the rung that flags launch, where its layout is not the plan's.
inline constexpr std::string_view launched_assignment_file = "launch-assignment.json";

/// Takes a file to write it; may be called from several threads.
using TakeFile = std::function<void(FileToWrite)>;

/// Makes the files of one replica of a plan, below replica-NNN/ of its folder; only a replica that is judged has a
/// trace. Equal plans give equal bytes, here and below.
[[nodiscard]] std::vector<FileToWrite> replica_files(const planner::Job& job, const planner::Batch& batch,
                                                     const planner::ReplicaPlan& replica, const LossTotals& losses,
                                                     const std::filesystem::path& folder);

/// Makes the files that are of all replicas together (plan.json, assignment.json, report.html, torch/), side by side,
/// and hands each over when it is made.
void make_whole_files(const planner::Job& job, const planner::Batch& batch, const planner::Plan& plan,
                      const std::filesystem::path& folder, const Executor& execute, const TakeFile& take);

/// Gives the content of plan.json ("pipeweaver-plan/1").
[[nodiscard]] nlohmann::ordered_json plan_json(const planner::Job& job, const planner::Batch& batch,
                                               const planner::Plan& plan);

/// What is known of a rung before the plan is whole, by the keys of plan.json; `gpus` of the cluster.
[[nodiscard]] nlohmann::ordered_json rung_so_far_json(std::int64_t gpus, const planner::Ladder& so_far,
                                                      const planner::Rung& rung);

/// Gives the content of assignment.json ("pipeweaver-assignment/1"): which samples and items each microbatch and unit
/// takes, with the weights that make the loss independent of the packing: a microbatch's loss tokens over the step's.
[[nodiscard]] std::string assignment_json(const planner::Job& job, const planner::Batch& batch,
                                          const planner::Plan& plan);

/// The same of a rung that flags launch, on its own layout and batch; of a unit nothing says which GPU takes it.
[[nodiscard]] std::string assignment_json(const planner::LaunchedWay& way);

/// The plan for a person: step, MFU, memory by rank in its fullest replica, every (partition, policy) with time, bound
/// and gap, where the time goes and what its figures rest on, and a picture of the slowest replica.
[[nodiscard]] std::string plan_table(const planner::Job& job, const planner::Batch& batch, const planner::Plan& plan);

/// The plan for a terminal: its ladder, what it rests on and what was left out, in some fifteen lines of at most 100
/// columns; with `verbose`, and for a plan without a ladder, plan_table() after it.
[[nodiscard]] std::string plan_text(const planner::Job& job, const planner::Batch& batch, const planner::Plan& plan,
                                    bool verbose);

/// A solved problem for a program: makespan, bound, gap, how it was found. Pre: found.schedule.
[[nodiscard]] nlohmann::ordered_json solution_answer(const schedule::Problem& problem, const search::Found& found);

/// A solved problem for a person.
[[nodiscard]] std::string solution_table(const schedule::Problem& problem, const search::Found& found);

/// A schedule as text, a row for each rank and time to the right, `columns` characters wide. The letter is the
/// module's, lower case forward, upper case backward, '+' weight gradient: what takes most of a column's time, all its
/// tasks together. '.' is a column of which the rank waits more than half. A legend follows. Pre: `replay` completed,
/// columns >= 1.
[[nodiscard]] std::string picture(const schedule::Replayer& replayer, const schedule::Schedule& schedule,
                                  const schedule::Replay& replay, std::size_t columns = 100);

/// Of a plan from measured stage times: problem.json.gz, solution.json, trace.json.gz, report.html and, of each target
/// that has a schedule of its own, its folder. Equal plans give equal bytes.
[[nodiscard]] std::vector<FileToWrite> stage_files(const planner::StageRequest& request, const planner::StagePlan& plan,
                                                   const std::filesystem::path& folder);

/// The answer for machines, a JSON object; docs/your-own-stage-times.md names its keys.
[[nodiscard]] nlohmann::ordered_json stage_json(const planner::StagePlan& plan);

/// The answer for a person: the solution as solution_table() has it, every policy with time, bound and gap, and
/// the schedules that targets have of their own.
[[nodiscard]] std::string stage_table(const planner::StagePlan& plan);

/// Needs as tables, with the columns that `costdb import` takes, without the latency that is to be measured: makes
/// gemm.csv, attention.csv, elementwise.csv and collectives.csv in `folder`, a header in each, rows by falling share.
/// These columns follow those of `costdb import`: `times` in a step, `share_percent` of the time of all, `estimate_us`
/// and `basis` as the database answers; of memory-bound work before them what its kernels work on (KernelShape).
[[nodiscard]] std::vector<FileToWrite> needs_files(const std::vector<planner::Need>& needs,
                                                   const std::filesystem::path& folder);

}  // namespace pipeweaver::emit
