#include "search/instance/task_groups.hpp"

#include "search/instance/priorities.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace pipeweaver::search {

namespace {

// Modules that meet in a microbatch are of one model.
std::size_t count_models(const Flat& flat, const TaskGroups& groups) {
    std::map<std::string_view, std::string_view> joined;
    const auto model_of = [&](std::string_view module) {
        while (joined.at(module) != module) module = joined.at(module);
        return module;
    };
    for (const auto& of_one : groups.by_microbatch) {
        const auto module_of = [&](std::uint32_t group) -> std::string_view {
            return flat.problem().tasks[groups.tasks[group].front()].module;
        };
        for (const std::uint32_t group : of_one) {
            joined.try_emplace(module_of(group), module_of(group));
            joined[model_of(module_of(group))] = model_of(module_of(of_one.front()));
        }
    }
    std::set<std::string_view> models;
    for (const auto& [module, with] : joined) models.insert(model_of(with));
    return models.size();
}

// Lists in the order of their keys.
template <class Key>
Groups<std::uint32_t> joined(const std::map<Key, std::vector<std::uint32_t>>& lists) {
    Groups<std::uint32_t> all;
    for (const auto& [key, list] : lists) {
        all.items.insert(all.items.end(), list.begin(), list.end());
        all.first.push_back(static_cast<std::uint32_t>(all.items.size()));
    }
    return all;
}

}  // namespace

TaskGroups::TaskGroups(const Flat& flat) : group_of(flat.tasks()), segment_of(segments_of(flat)) {
    const auto& all = flat.problem().tasks;
    const auto component = components_of(flat);
    using Key = std::tuple<std::uint32_t, std::int64_t, std::string_view, std::int64_t, std::uint32_t, std::uint8_t>;
    std::map<Key, std::uint32_t> number;
    std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> microbatch;
    std::map<std::string_view, std::uint32_t> kind;
    std::vector<std::vector<std::uint32_t>> members;
    for (const std::uint32_t i : flat.reading) {
        const std::pair owner(component[i], all[i].microbatch.value_or(-1));
        const Key key{owner.first, owner.second, all[i].module, all[i].item.value_or(-1), segment_of[i], flat.late[i]};
        const auto [group, fresh] = number.try_emplace(key, static_cast<std::uint32_t>(members.size()));
        if (fresh) {
            members.emplace_back();
            const auto row = microbatch.try_emplace(owner, static_cast<std::uint32_t>(by_microbatch.size())).first;
            if (row->second == by_microbatch.size()) {
                by_microbatch.emplace_back();
                kind_of.push_back(
                    kind.try_emplace(all[i].module, static_cast<std::uint32_t>(kind.size())).first->second);
            }
            by_microbatch[row->second].push_back(group->second);
            microbatch_of.push_back(row->second);
            late.push_back(flat.late[i]);
        }
        group_of[i] = group->second;
        members[group->second].push_back(i);
    }
    work.assign(kind.size(), {1, 1});
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint8_t>, std::int64_t> sums;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        const std::uint32_t mine = microbatch_of[group_of[i]];
        std::int64_t& sum = sums[{mine, flat.rank_of[i], flat.late[i]}];
        sum += flat.shortest[i];
        std::int64_t& most = work[kind_of[mine]][flat.late[i]];
        most = std::max(most, sum);
    }
    for (const auto& list : members) {
        tasks.items.insert(tasks.items.end(), list.begin(), list.end());
        tasks.first.push_back(static_cast<std::uint32_t>(tasks.items.size()));
    }
    several_models = count_models(flat, *this) > 1;
}

PairGroups::PairGroups(const Flat& flat, const TaskGroups& groups) {
    const auto& problem = flat.problem();
    std::map<std::tuple<std::uint32_t, std::string_view>, std::vector<std::uint32_t>> modules;
    std::map<std::tuple<std::uint32_t, std::string_view, std::int64_t>, std::vector<std::uint32_t>> items;
    for (std::uint32_t k = 0; k < problem.pairs.size(); ++k) {
        if (problem.pairs[k].modes.size() < 2) continue;
        const std::size_t forward = index(problem.pairs[k].forward);
        const std::uint32_t microbatch = groups.microbatch_of[groups.group_of[forward]];
        const schedule::Task& task = problem.tasks[forward];
        modules[{microbatch, task.module}].push_back(k);
        items[{microbatch, task.module, task.item.value_or(-1)}].push_back(k);
    }
    of_module = joined(modules);
    of_item = joined(items);
}

std::vector<std::uint32_t> Side::forwards(std::vector<std::uint32_t> sequence) const {
    if (reversed) std::reverse(sequence.begin(), sequence.end());
    return sequence;
}

std::vector<std::unique_ptr<Side>> sides_of(const Flat& flat) {
    std::vector<std::unique_ptr<Side>> sides;
    sides.push_back(std::make_unique<Side>(flat, false));
    if (returns_all_memory(flat)) sides.push_back(std::make_unique<Side>(reversed(flat), true));
    return sides;
}

}  // namespace pipeweaver::search
