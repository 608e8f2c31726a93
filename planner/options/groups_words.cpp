#include "pipeweaver/planner/groups_words.hpp"

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/groups/plan.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace pipeweaver::planner {

namespace {

constexpr std::array<std::string_view, 20> without_effect_on_groups{
    "equal-microbatches", "layout",     "tp",     "pp",      "dp",   "cp",         "ep",     "context",
    "microbatches",       "tokens",     "price",  "zero",    "also", "assignment", "loader", "headroom",
    "deal-images",        "max-rounds", "target", "replicas"};

void add_seed(OptionTable& table, std::int64_t& seed) {
    table.integer("seed", seed, 0, 9'007'199'254'740'991, "of what is drawn");
}

// The options of `groups` that say what a split is planned for.
struct PlannedFor {
    PlannedFor() {
        asked.add_apart_from_layout(table);
        add_seed(table, seed);
    }

    WorkloadOptions asked;
    std::int64_t seed = 1;
    OptionTable table;
};

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
    asked.as_far = true;
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

DrawnForGroups drawn_for_groups(const WorkloadOptions& asked, const workloads::Model& model, std::int64_t seed) {
    const auto from_seed = static_cast<std::uint64_t>(seed);
    if (!asked.batch.empty()) {
        const Batch read = asked.read(model, from_seed);
        return {read.name, read.samples.size(), workloads::pack(read.samples, model, asked.how_packed())};
    }
    const auto number = asked.global_batch.value_or(GlobalBatch{64, true});
    const auto draw = number.of_microbatches ? workloads::draw_batch : workloads::draw_samples;
    auto made = draw(asked.dataset, model, from_seed, number.number, asked.how_packed(), {});
    return {fmt::format("{} (seed {})", asked.dataset, seed), made.samples.size(), std::move(made.microbatches)};
}

std::string planned_for(const OptionValues& words) {
    PlannedFor planned;
    for (const OptionTable::Entry& entry : planned.table.entries()) {
        const OptionValues::Value* const value = words.find(entry.name);
        if (value == nullptr || entry.name == "cluster") continue;
        if (value->flag)
            *entry.flag = true;
        else
            entry.set(value->text);
    }
    const OptionValues unusual = planned.table.values();
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const OptionValues::Value& one : unusual.all()) one.flag ? json[one.name] = true : json[one.name] = one.text;
    if (planned.asked.headroom == emulator::usual_headroom && !planned.asked.automatic_headroom) json.erase("headroom");
    return json.dump();
}

void take_planned(const std::string& name, const std::string& text, WorkloadOptions& asked, std::int64_t& seed) {
    OptionTable table;
    asked.add_apart_from_layout(table);
    add_seed(table, seed);
    const JsonDocument document(name, text);
    table.configure(document.root());
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
