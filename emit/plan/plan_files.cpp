#include "pipeweaver/emit/plan_files.hpp"

#include "emit/plan/launch_files.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/planner/targets.hpp"

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
    const auto waste = [](std::int64_t real, std::int64_t padded) {
        return padded == 0 ? 0.0 : 1 - static_cast<double>(real) / static_cast<double>(padded);
    };
    nlohmann::ordered_json json{{"format", "pipeweaver-padding/1"},
                                {"replicas", job.setup->layout.dp},
                                {"n_microbatches", padding.microbatches.size()},
                                {"repeated_microbatches", plan.repeated},
                                {"tokens", padding.tokens},
                                {"items", padding.items},
                                {"item_patches", padding.item_patches},
                                {"padded_share_of_tokens", waste(padding.real_tokens, padding.padded_tokens)},
                                {"padded_share_of_patches", waste(padding.real_patches, padding.padded_patches)},
                                {"recompute", name_of(plan.recompute)}};
    for (const emulator::Recompute one : plan.by_rank) json["recompute_of_ranks"].push_back(name_of(one));
    return json.dump(1) + "\n";
}

std::vector<FileToWrite> target_files(const Job& job, const Batch& batch, const TargetPlan& plan,
                                      const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    if (!plan.found.schedule) return files;
    const planner::Target& target = planner::target(plan.target);
    const auto place = folder / target.folder;
    add_schedule(files, place, {plan.target}, plan.cut.step.problem, plan.found, nullptr,
                 known_of(job, batch, target, plan));
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
                 replica.found, &actions, KnownOfPlan{job, batch, replica.cut.partition, replica.microbatches});
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
    for (const TargetPlan& one : plan.targets)
        makes.emplace_back([&] { return target_files(job, batch, one, folder); });
    run_jobs(execute, makes.size(), [&](std::size_t i) {
        for (FileToWrite& file : makes[i]()) take(std::move(file));
    });
}

std::vector<FileToWrite> plan_files(const Job& job, const Batch& batch, const Plan& plan,
                                    const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    const LossTotals losses = loss_totals(job, batch, plan.partition());
    make_whole_files(job, batch, plan, folder, in_order, [&](FileToWrite file) { files.push_back(std::move(file)); });
    for (const ReplicaPlan& replica : plan.replicas)
        for (FileToWrite& file : replica_files(job, batch, replica, losses, folder)) files.push_back(std::move(file));
    return files;
}

}  // namespace pipeweaver::emit
