#include "search/improve/group_phase.hpp"

#include "search/instance/priorities.hpp"

#include <algorithm>

namespace pipeweaver::search {

GroupPhase::GroupPhase(const Flat& flat, std::size_t slots) : sides_(sides_of(flat)) {
    slots_.reserve(slots);
    for (std::size_t s = 0; s < slots; ++s) slots_.emplace_back(flat, side_of(s));
}

std::uint64_t GroupPhase::begin(std::span<const std::uint32_t> mode, const Executor& execute) {
    mode_.assign(mode.begin(), mode.end());
    std::uint64_t made = 0;
    for (const auto& side : sides_) {
        const auto orders = priorities(side->flat);
        struct Beginning {
            GroupKeys keys;
            std::int64_t makespan = INT64_MAX;
        };
        std::vector<Beginning> all(orders.size() * all_choices.size());
        execute(all.size(), [&](std::size_t k) {
            GroupSearch search(side->flat, side->groups);
            if (search.prepare(side->flat.costs(mode_))) return;
            search.start(all_choices[k % all_choices.size()], orders[k / all_choices.size()].position);
            all[k].makespan = search.evaluate();
            all[k].keys = search.keys();
        });
        made += all.size();
        std::stable_sort(all.begin(), all.end(),
                         [](const Beginning& a, const Beginning& b) { return a.makespan < b.makespan; });
        // Each of the best two times: from one beginning, two random walks.
        const std::size_t different = std::max<std::size_t>(1, slots_.size() / sides_.size() / 2);
        std::size_t next = 0;
        for (Slot& slot : slots_) {
            if (slot.side != side.get()) continue;
            slot.fits = !slot.search.prepare(side->flat.costs(mode_));
            slot.search.take(all[next++ % different].keys);
        }
    }
    return made;
}

void GroupPhase::keep_if_better(Slot& slot) {
    const auto& dispatcher = slot.search.dispatcher();
    // Read backwards, a schedule may end sooner than it began late: its own makespan is an upper bound.
    if (slot.best.valid() && dispatcher.makespan() >= slot.best.energy.makespan) return;
    slot.walk.load(slot.side->forwards(dispatcher.sequence()), mode_);
    Candidate candidate;
    store(slot.walk, candidate);
    if (better(candidate, slot.best)) slot.best = std::move(candidate);
}

void GroupPhase::round(std::uint64_t seed, std::uint64_t first, std::uint64_t each, const Executor& execute) {
    execute(slots_.size(), [&](std::size_t s) {
        Slot& slot = slots_[s];
        if (!slot.fits) return;
        for (std::uint64_t k = 0; k < each; ++k) {
            Random random(seed, first + s * each + k);
            slot.search.step(random);
            keep_if_better(slot);
        }
    });
}

void GroupPhase::follow_the_better() {
    for (const auto& side : sides_) {
        std::vector<std::pair<std::int64_t, Slot*>> standing;
        for (Slot& slot : slots_)
            if (slot.side == side.get() && slot.fits) standing.emplace_back(slot.search.makespan(), &slot);
        std::stable_sort(standing.begin(), standing.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t k = 0; k < standing.size() / 2; ++k)
            standing[standing.size() - 1 - k].second->search.follow(standing[k].second->search);
    }
}

}  // namespace pipeweaver::search
