#include "pipeweaver/emit/plan_files.hpp"

#include "emit/plan/parts.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using namespace planner;

namespace {

std::string padding_json(const TargetPlan& plan) {
    const auto& padding = plan.padding;
    const auto waste = [](std::int64_t real, std::int64_t padded) {
        return padded == 0 ? 0.0 : 1 - static_cast<double>(real) / static_cast<double>(padded);
    };
    const nlohmann::ordered_json json{{"format", "pipeweaver-padding/1"},
                                      {"tokens", padding.tokens},
                                      {"items", padding.items},
                                      {"item_patches", padding.item_patches},
                                      {"padded_share_of_tokens", waste(padding.real_tokens, padding.padded_tokens)},
                                      {"padded_share_of_patches", waste(padding.real_patches, padding.padded_patches)},
                                      {"recompute", name_of(plan.recompute)}};
    return json.dump(1) + "\n";
}

// Those whose trace is written: all, or the slowest of many.
std::vector<bool> traced(const Plan& plan) {
    std::vector<std::size_t> replicas(plan.replicas.size());
    std::iota(replicas.begin(), replicas.end(), std::size_t{0});
    const auto makespan = [&](std::size_t r) { return plan.replicas[r].found.replay.makespan; };
    std::stable_sort(replicas.begin(), replicas.end(),
                     [&](std::size_t a, std::size_t b) { return makespan(a) > makespan(b); });
    replicas.resize(std::min(replicas.size(), most_replicas_judged));
    std::vector<bool> all(plan.replicas.size(), false);
    for (const std::size_t r : replicas) all[r] = true;
    return all;
}

std::vector<FileToWrite> replica_files(const Request& request, const Plan& plan, std::size_t r, bool trace,
                                       const std::filesystem::path& place) {
    const ReplicaPlan& replica = plan.replicas[r];
    std::optional<ActionLists> actions;
    if (!why_no_actions(request, plan)) {
        actions = actions_of(request, plan, r);
        PIPEWEAVER_ASSERT(!why_not_runnable(*actions));
    }
    std::vector<FileToWrite> files;
    add_schedule(files, place, {"free", trace}, replica.cut.step.problem, replica.found, actions ? &*actions : nullptr);
    return files;
}

std::vector<FileToWrite> target_files(const TargetPlan& plan, const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    if (!plan.found.schedule) return files;
    const auto place = folder / planner::target(plan.target).folder;
    add_schedule(files, place, {plan.target}, plan.cut.step.problem, plan.found);
    files.push_back({place / "padding.json", padding_json(plan)});
    return files;
}

}  // namespace

void make_plan_files(const Request& request, const Plan& plan, const std::filesystem::path& folder,
                     const Executor& execute, const TakeFile& take) {
    using Make = std::function<std::vector<FileToWrite>()>;
    std::vector<Make> makes{
        [&] {
            return std::vector<FileToWrite>{{folder / "report.html", report(request, plan)}};
        },
        [&] {
            return std::vector<FileToWrite>{
                {folder / "plan.json", plan_json(request, plan).dump(1) + "\n"},
                {folder / "assignment.json", assignment_json(request, plan)},
                {folder / "partition.json",
                 partition::to_json({plan.partition(), plan.partition_choice.chosen_on}, *request.setup)}};
        }};
    const auto has_trace = traced(plan);
    for (std::size_t r = 0; r < plan.replicas.size(); ++r)
        makes.emplace_back(
            [&, r] { return replica_files(request, plan, r, has_trace[r], folder / fmt::format("replica-{:03}", r)); });
    for (const TargetPlan& one : plan.targets) makes.emplace_back([&] { return target_files(one, folder); });
    run_jobs(execute, makes.size(), [&](std::size_t i) {
        for (FileToWrite& file : makes[i]()) take(std::move(file));
    });
}

std::vector<FileToWrite> plan_files(const Request& request, const Plan& plan, const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    make_plan_files(request, plan, folder, in_order, [&](FileToWrite file) { files.push_back(std::move(file)); });
    return files;
}

}  // namespace pipeweaver::emit
