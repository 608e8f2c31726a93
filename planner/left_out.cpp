#include "pipeweaver/planner/left_out.hpp"

#include "pipeweaver/planner/doing.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::planner {

namespace {

double part_of(std::string_view what) {
    const auto found =
        std::find_if(parts_of_plan.begin(), parts_of_plan.end(), [&](const Part& one) { return one.what == what; });
    return found == parts_of_plan.end() ? 0 : found->part;
}

void add_known_schedules(std::vector<LeftOut>& all, const Baselines& baselines) {
    const auto& refused = baselines.not_applicable;
    const auto untried = static_cast<std::size_t>(std::count_if(
        refused.begin(), refused.end(), [](const NotApplicable& one) { return one.why == no_time_left; }));
    if (untried == 0) return;
    const std::size_t known = baselines.all.size() + untried;
    all.push_back({fmt::format("{} of {} known schedules", untried, known),
                   part_of(doing::known_schedules) * static_cast<double>(untried) / static_cast<double>(known)});
}

void add_rounds(std::vector<LeftOut>& all, const std::vector<ReplicaPlan>& replicas) {
    const auto ended = std::count_if(replicas.begin(), replicas.end(), [](const ReplicaPlan& one) {
        return one.found.stop_reason == schedule::StopReason::budget ||
               one.found.stop_reason == schedule::StopReason::stopped;
    });
    if (ended == 0) return;
    const double part = part_of(doing::replica) * static_cast<double>(ended) / static_cast<double>(replicas.size()) / 2;
    all.push_back({replicas.size() == 1
                       ? "more rounds of the search"
                       : fmt::format("more rounds of the search on {} of {} replicas", ended, replicas.size()),
                   part});
}

}  // namespace

std::vector<LeftOut> left_out(const Plan& plan) {
    std::vector<LeftOut> all;
    if (plan.ladder.interrupted) all.push_back({"interrupted", 0});
    add_known_schedules(all, plan.baselines);
    for (const std::string& one : plan.ladder.left_out) all.push_back({one, part_of(one)});
    for (const TargetPlan& one : plan.targets)
        if (one.cut_short)
            all.push_back({fmt::format("other partitions for {}", target(one.target).title), fractions.target});
    if (plan.partition_choice.cut_short) all.push_back({"searches of other partitions", part_of(doing::partition) / 2});
    if (plan.lacks_robustness) all.push_back({"replays under wrong costs", fractions.robustness});
    if (plan.is_searched && !plan.is_opponents) add_rounds(all, plan.replicas);
    return all;
}

}  // namespace pipeweaver::planner
