#include "search/improve/group_phase.hpp"

#include "search/instance/priorities.hpp"

#include <algorithm>

namespace pipeweaver::search {

std::uint64_t GroupPhase::begin(std::uint64_t work, const Executor& execute) {
    std::uint64_t made = 0;
    for (const auto& side : sides()) {
        const auto orders = priorities(side->flat);
        struct Beginning {
            GroupPoint point;
            std::int64_t makespan = INT64_MAX;
        };
        const std::size_t pairs = orders.size() * all_choices.size();
        std::vector<Beginning> all(std::clamp<std::size_t>(work / side->flat.tasks(), 1, pairs));
        execute(all.size(), [&](std::size_t k) {
            GroupSearch search(side->flat, side->groups);
            if (search.prepare(mode())) return;
            const std::size_t pair = k * pairs / all.size();
            search.start(all_choices[pair % all_choices.size()], orders[pair / all_choices.size()].position);
            all[k].makespan = search.evaluate();
            all[k].point = search.point();
        });
        made += all.size();
        std::stable_sort(all.begin(), all.end(),
                         [](const Beginning& a, const Beginning& b) { return a.makespan < b.makespan; });
        // Each of the best twice: from one beginning, two random searches.
        const std::size_t different = std::max<std::size_t>(1, slots().size() / sides().size() / 2);
        std::size_t next = 0;
        for (Slot& slot : slots())
            if (slot.side == side.get() && slot.fits)
                slot.search.take(all[next++ % std::min(different, all.size())].point);
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

void GroupPhase::go_on_from(const Candidate& schedule) {
    for (std::size_t s = 0; s < slots().size(); ++s) {
        Slot& slot = slots()[s];
        const std::size_t turn = s / sides().size();
        if (!slot.fits || turn % 2 == 0) continue;
        const auto sequence = slot.side->forwards(schedule.sequence);  // turned round, back or forth
        std::vector<std::uint32_t> place(sequence.size());
        for (std::uint32_t i = 0; i < sequence.size(); ++i) place[sequence[i]] = i;
        static_cast<void>(slot.search.start(all_choices[turn / 2 % all_choices.size()], place, schedule.mode));
    }
}

}  // namespace pipeweaver::search
