#include "search/improve/group_phase.hpp"

#include "search/instance/priorities.hpp"

#include <algorithm>

namespace pipeweaver::search {

std::uint64_t GroupPhase::begin(const Executor& execute) {
    std::uint64_t made = 0;
    for (const auto& side : sides()) {
        const auto orders = priorities(side->flat);
        struct Beginning {
            GroupKeys keys;
            std::int64_t makespan = INT64_MAX;
        };
        std::vector<Beginning> all(orders.size() * all_choices.size());
        execute(all.size(), [&](std::size_t k) {
            GroupSearch search(side->flat, side->groups);
            if (search.prepare(side->flat.costs(mode()))) return;
            search.start(all_choices[k % all_choices.size()], orders[k / all_choices.size()].position);
            all[k].makespan = search.evaluate();
            all[k].keys = search.keys();
        });
        made += all.size();
        std::stable_sort(all.begin(), all.end(),
                         [](const Beginning& a, const Beginning& b) { return a.makespan < b.makespan; });
        // Each of the best twice: from one beginning, two random searches.
        const std::size_t different = std::max<std::size_t>(1, slots().size() / sides().size() / 2);
        std::size_t next = 0;
        for (Slot& slot : slots())
            if (slot.side == side.get()) slot.search.take(all[next++ % different].keys);
    }
    return made;
}

void GroupPhase::follow_the_better() {
    for (const auto& side : sides()) {
        std::vector<std::pair<std::int64_t, Slot*>> standing;
        for (Slot& slot : slots())
            if (slot.side == side.get() && slot.fits) standing.emplace_back(slot.search.makespan(), &slot);
        std::stable_sort(standing.begin(), standing.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t k = 0; k < standing.size() / 2; ++k)
            standing[standing.size() - 1 - k].second->search.follow(standing[k].second->search);
    }
}

}  // namespace pipeweaver::search
