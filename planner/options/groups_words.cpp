#include "pipeweaver/planner/groups_words.hpp"

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/groups/plan.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace pipeweaver::planner {

namespace {

constexpr std::array<std::string_view, 20> without_effect_on_groups{
    "equal-microbatches", "layout",     "tp",     "pp",      "dp",   "cp",         "ep",     "context",
    "microbatches",       "tokens",     "price",  "zero",    "also", "assignment", "loader", "headroom",
    "deal-images",        "max-rounds", "target", "replicas"};

bool reads_images(const workloads::Module& module) {
    const auto& all = module.modalities;
    return std::find(all.begin(), all.end(), workloads::Modality::image) != all.end();
}

}  // namespace

bool ask_for_launched(const Target& runs, groups::Request& asked) {
    if (!runs.launches_grids) return true;
    const workloads::Model& model = asked.setup->model;
    if (asked.groups.size() != 2) return false;
    asked.parts_items = false;
    for (groups::Asked& group : asked.groups) {
        const std::size_t first = group.modules.front();
        if (group.modules.size() > 1 || first > model.backbone()) return false;
        group.zero = 1;
        if (first == model.backbone()) continue;
        if (!reads_images(model.modules[first])) return false;
        group.pp = 1;
    }
    return true;
}

std::optional<HostBound> far_end(groups::Request request, const groups::Placing& placing) {
    const auto waiting = waiting_for_host(*request.setup);
    if (!waiting) return std::nullopt;
    request.setup = &*waiting;
    for (std::size_t g = 0; g < placing.groups.size(); ++g) groups::take_layout(placing.groups[g], request.groups[g]);
    const auto eager = groups::on_own_gpus(request);
    return eager ? host_bound_of(*waiting, placing.step, eager->step) : std::nullopt;
}

GroupsWords groups_words(const OptionValues& of_plan) {
    OptionTable table;
    WorkloadOptions known;
    known.add_apart_from_layout(table);
    GroupsWords made;
    const auto& without = without_effect_on_groups;
    for (const OptionValues::Value& one : of_plan.all()) {
        if (std::find(without.begin(), without.end(), one.name) != without.end()) continue;
        const bool takes = std::any_of(table.entries().begin(), table.entries().end(),
                                       [&](const auto& entry) { return entry.name == one.name; });
        if (!takes && one.name != "seed" && made.not_there.empty()) made.not_there = one.name;
        one.flag ? made.words.set_flag(one.name) : made.words.set(one.name, one.text);
    }
    return made;
}

}  // namespace pipeweaver::planner
