#include "pipeweaver/emit/plan_files.hpp"

#include "emit/plan/parts.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

}  // namespace

std::vector<FileToWrite> plan_files(const Request& request, const Plan& plan, const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    files.push_back({folder / "plan.json", plan_json(request, plan).dump(1) + "\n"});
    files.push_back({folder / "assignment.json", assignment_json(request, plan)});
    files.push_back({folder / "partition.json",
                     partition::to_json({plan.partition(), plan.partition_choice.chosen_on}, *request.setup)});
    files.push_back({folder / "report.html", report(request, plan)});
    for (std::size_t r = 0; r < plan.replicas.size(); ++r) {
        const ReplicaPlan& replica = plan.replicas[r];
        const auto place = folder / fmt::format("replica-{:03}", r);
        std::optional<ActionLists> actions;
        if (!why_no_actions(request, plan)) {
            actions = actions_of(request, plan, r);
            PIPEWEAVER_ASSERT(!why_not_runnable(*actions));
        }
        add_schedule(files, place, "free", replica.cut.step.problem, replica.found, actions ? &*actions : nullptr);
    }
    for (const TargetPlan& one : plan.targets) {
        if (!one.found.schedule) continue;
        const auto place = folder / planner::target(one.target).folder;
        add_schedule(files, place, one.target, one.cut.step.problem, one.found);
        files.push_back({place / "padding.json", padding_json(one)});
    }
    return files;
}

}  // namespace pipeweaver::emit
