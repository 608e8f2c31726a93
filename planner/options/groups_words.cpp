#include "pipeweaver/planner/groups_words.hpp"

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace pipeweaver::planner {

namespace {

constexpr std::array<std::string_view, 20> without_effect_on_groups{
    "equal-microbatches", "layout",     "tp",     "pp",      "dp",   "cp",         "ep",     "context",
    "microbatches",       "tokens",     "price",  "zero",    "also", "assignment", "loader", "headroom",
    "deal-images",        "max-rounds", "target", "replicas"};

}  // namespace

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
