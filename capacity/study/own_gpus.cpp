#include "capacity/study/own_gpus.hpp"

#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/groups/plan.hpp"
#include "pipeweaver/planner/groups_words.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/search/policy_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace pipeweaver::capacity {

namespace {

constexpr int most_zero_of_groups = 1;

// What is asked of the cell that groups of GPUs have not; empty: nothing.
std::string not_of_groups(const Cell& cell) {
    const planner::WorkloadOptions& workload = cell.job->plan.workload;
    const planner::Target& runs = planner::target(workload.target);
    if (!runs.groups && runs.name != planner::targets().front().name)
        return fmt::format("{} launches no groups of GPUs", runs.option);
    // Costs of waiting GPUs and of loaders' cores stand against those of shared GPUs.
    if (!cell.job->plan.batch.loader.empty()) return "groups of GPUs have no --loader";
    if (workload.anchor_read) return "groups of GPUs: an anchor is of shared GPUs";
    const auto made = planner::groups_words(cell.asked);
    return made.not_there.empty() ? std::string() : fmt::format("groups of GPUs have no --{}", made.not_there);
}

// "vit selective, llm none"; of one way in all groups its name.
std::string recompute_of_groups(const groups::Placing& placing) {
    const auto& all = placing.groups;
    const auto first = all.front().recompute;
    if (std::all_of(all.begin(), all.end(), [&](const groups::Placed& one) { return one.recompute == first; }))
        return std::string(emulator::name_of(first));
    std::string text;
    for (const groups::Placed& one : all)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.name, emulator::name_of(one.recompute));
    return text;
}

Point refused_groups(std::string why) {
    Point point{.as = {}, .split = ""};
    point.why = std::move(why);
    return point;
}

}  // namespace

Point point_on_own_gpus(const Cell& cell, emulator::Setup setup,
                        const std::vector<workloads::Microbatch>& microbatches) {
    if (std::string why = not_of_groups(cell); !why.empty()) return refused_groups(std::move(why));
    setup.recipe.zero = std::min(setup.recipe.zero, most_zero_of_groups);
    groups::Request request;
    request.setup = &setup;
    request.microbatches = microbatches;
    request.groups = groups::groups_with_work(setup.model, microbatches);
    if (request.groups.size() < 2) return refused_groups("groups of GPUs: one module alone has work");
    if (auto why = groups::why_not(request)) return refused_groups(std::move(*why));
    if (!planner::ask_for_launched(planner::target(cell.job->plan.workload.target), request))
        return refused_groups("groups of GPUs: MegatronMIMO's grids are for a language model and an encoder of images");
    const auto found = groups::on_own_gpus_soon(request);
    if (!found) return refused_groups("groups of GPUs: no split fits");
    Point point{.as = {{}, setup.recipe.zero}, .status = PointStatus::judged, .split = groups::text_of(*found)};
    point.step = found->step;
    if (const auto far = planner::far_end(request, *found)) point.far = far->most();
    point.partition = "groups";
    point.policy = search::one_f_one_b_policy;
    point.recompute = recompute_of_groups(*found);
    for (const groups::Placed& one : found->groups) point.memory = std::max(point.memory, one.peak);
    return point;
}

std::string command_on_own_gpus(const Cell& cell, const Point& point) {
    const planner::WorkloadOptions& workload = cell.job->plan.workload;
    OptionValues words = planner::groups_words(cell.asked).words;
    if (!workload.recipe.empty()) words.set("recipe", workload.recipe);
    words.set("headroom", planner::text_of_headroom(headroom_of(cell)));
    words.set("zero", std::to_string(point.as.zero));
    words.set("groups", *point.split);
    return words.command("pipeweaver groups");
}

}  // namespace pipeweaver::capacity
