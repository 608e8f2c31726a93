#include "pipeweaver/emit/plan_files.hpp"

#include "emit/plan/launch_files.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using namespace planner;

namespace {

std::string padding_json(const Job& job, const TargetPlan& plan) {
    const auto& padding = plan.padding;
    nlohmann::ordered_json json{{"format", "pipeweaver-padding/1"},
                                {"replicas", job.setup->layout.dp},
                                {"n_microbatches", padding.microbatches.size()},
                                {"repeated_microbatches", plan.repeated},
                                {"tokens", padding.tokens},
                                {"items", padding.items},
                                {"item_patches", padding.item_patches},
                                {"padded_share_of_tokens", padded_share(padding.real_tokens, padding.padded_tokens)},
                                {"padded_share_of_patches", padded_share(padding.real_patches, padding.padded_patches)},
                                {"recompute", name_of(plan.recompute)}};
    for (const emulator::Recompute one : plan.by_rank) json["recompute_of_ranks"].push_back(name_of(one));
    return json.dump(1) + "\n";
}

std::vector<FileToWrite> target_files(const Job& job, const TargetPlan& plan, const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    if (!plan.found.schedule) return files;
    const planner::Target& target = planner::target(plan.target);
    const auto place = folder / target.folder;
    add_schedule(files, place, {plan.target}, plan.cut.step.problem, plan.found);
    if (target.fixed_shapes) files.push_back({place / "padding.json", padding_json(job, plan)});
    return files;
}

}  // namespace

std::vector<FileToWrite> replica_files(const Job& job, const Batch& batch, const ReplicaPlan& replica,
                                       const LossTotals& losses, const std::filesystem::path& folder) {
    const ActionLists actions = actions_of(job, batch, replica, losses);
    PIPEWEAVER_ASSERT(!why_not_runnable(actions));
    std::vector<FileToWrite> files;
    add_schedule(files, folder / fmt::format("replica-{:03}", replica.number),
                 {"free", replica.examined, job.lists_by_rank, replica.optimizer}, replica.cut.step.problem,
                 replica.found, &actions);
    return files;
}

void make_whole_files(const Job& job, const Batch& batch, const Plan& plan, const std::filesystem::path& folder,
                      const Executor& execute, const TakeFile& take) {
    using Make = std::function<std::vector<FileToWrite>()>;
    std::vector<Make> makes{
        [&] {
            return std::vector<FileToWrite>{{folder / "report.html", report(job, batch, plan)}};
        },
        [&] {
            return std::vector<FileToWrite>{
                {folder / plan_file, plan_json(job, batch, plan).dump(1) + "\n"},
                {folder / assignment_file, assignment_json(job, batch, plan)},
                {folder / "partition.json",
                 partition::to_json({plan.partition(), plan.partition_choice.chosen_on}, *job.setup)}};
        }};
    makes.emplace_back([&] { return launch_files(job, plan, folder); });
    if (job.defer)
        makes.emplace_back([&] {
            return std::vector<FileToWrite>{{folder / "deferred.jsonl", workloads::to_jsonl(batch.deferred)}};
        });
    for (const TargetPlan& one : plan.targets) makes.emplace_back([&] { return target_files(job, one, folder); });
    run_jobs(execute, makes.size(), [&](std::size_t i) {
        for (FileToWrite& file : makes[i]()) take(std::move(file));
    });
}

std::vector<FileToWrite> stage_files(const StageRequest& request, const StagePlan& plan,
                                     const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    const StageSchedule& best = plan.best;
    add_schedule(files, folder, {"free"}, best.problem, best.found);
    files.push_back({folder / "report.html", report(request, plan)});
    for (const StageSchedule& own : plan.targets)
        if (own.found.schedule)
            add_schedule(files, folder / planner::target(own.target).folder, {own.target}, own.problem, own.found);
    return files;
}

nlohmann::ordered_json stage_json(const StagePlan& plan) {
    using Json = nlohmann::ordered_json;
    Json answer = solution_answer(plan.best.problem, plan.best.found);
    answer["peak_bytes"] = Json::array();
    for (const Bytes peak : plan.best.found.replay.peak) answer["peak_bytes"].push_back(peak.count);
    if (const auto& one = plan.split_or_whole)
        answer["split_backwards"] = {
            {"slowdown", one->slowdown}, {"taken", one->split}, {"otherwise_ns", one->otherwise.count()}};
    answer["policies"] = Json::array();
    for (const PolicyRun& one : plan.policies) {
        const Duration makespan = one.result.replay.makespan;
        if (one.result.schedule)
            answer["policies"].push_back({{"policy", one.policy},
                                          {"makespan_ns", makespan.count()},
                                          {"gap", schedule::relative_gap(makespan, plan.best.found.bound)}});
        else
            answer["policies"].push_back({{"policy", one.policy}, {"why_not", one.result.why_not}});
    }
    for (const auto& [name, problem, found] : plan.targets)
        answer[planner::target(name).folder] =
            found.schedule ? solution_answer(problem, found) : Json{{"why_not", found.why_not}};
    return answer;
}

namespace {

std::string policies_text(const StagePlan& plan) {
    const search::Found& best = plan.best.found;
    TextTable table(
        {{"schedule", true, 14}, {"time", false, 11}, {"bound", false, 11}, {"gap", false, 8}, {"vs plan", false, 8}},
        1);
    const auto row = [&](const std::string& name, Duration makespan) {
        table.add({name, human(makespan), human(best.bound), percent(schedule::relative_gap(makespan, best.bound)),
                   times(ratio(makespan, best.replay.makespan))});
    };
    row("plan", best.replay.makespan);
    for (const PolicyRun& one : plan.policies)
        if (one.result.schedule) row(one.policy, one.result.replay.makespan);
    return "\n" + table.text() + not_applicable_text(not_applicable(plan.policies));
}

std::string stage_target_text(const StagePlan& plan, const StageSchedule& own) {
    const search::Found& found = own.found;
    const planner::Target& row = planner::target(own.target);
    if (!found.schedule) return fmt::format("\n{}: no schedule: {}\n", row.title, found.why_not);
    return fmt::format("\n{} ({}): makespan {}, {} the plan's\n", row.title, schedule_file(row),
                       human(found.replay.makespan),
                       times(ratio(found.replay.makespan, plan.best.found.replay.makespan)));
}

}  // namespace

std::string stage_table(const StagePlan& plan) {
    std::string text = solution_table(plan.best.problem, plan.best.found);
    if (const auto& one = plan.split_or_whole)
        text += fmt::format("backwards are {}; {} the step takes {}\n",
                            one->split ? fmt::format("split, at {} times their time", one->slowdown) : "whole",
                            one->split ? "whole" : fmt::format("split, at {} times their time,", one->slowdown),
                            human(one->otherwise));
    text += policies_text(plan);
    for (const StageSchedule& own : plan.targets) text += stage_target_text(plan, own);
    return text;
}

}  // namespace pipeweaver::emit
