#include "search/instance/pair_groups.hpp"

#include <map>
#include <string_view>
#include <tuple>

namespace pipeweaver::search {

namespace {

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

}  // namespace pipeweaver::search
