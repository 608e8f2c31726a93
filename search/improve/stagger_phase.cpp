#include "search/improve/stagger_phase.hpp"

namespace pipeweaver::search {

StaggerPhase::StaggerPhase(const Flat& flat, std::size_t slots, std::span<const std::uint32_t> mode)
    : sides_(sides_of(flat)), mode_(mode.begin(), mode.end()) {
    slots_.reserve(slots);
    for (std::size_t s = 0; s < slots; ++s) {
        const Side& side = *sides_[s % sides_.size()];
        slots_.push_back({&side, StaggerSearch(side.flat, side.groups), Walk(flat), {}, false});
        slots_.back().fits = !slots_.back().search.prepare(side.flat.costs(mode_));
    }
}

void StaggerPhase::step(Slot& slot, Random& random, std::int64_t horizon) {
    const std::int64_t makespan = slot.search.step(random, horizon);
    if (makespan == INT64_MAX || (slot.best.valid() && makespan >= slot.best.energy.makespan)) return;
    slot.walk.load(slot.side->forwards(slot.search.sequence()), mode_);
    Candidate candidate;
    store(slot.walk, candidate);
    if (better(candidate, slot.best)) slot.best = std::move(candidate);
}

void StaggerPhase::round(std::uint64_t seed, std::uint64_t first, std::uint64_t each, std::int64_t horizon,
                         const Executor& execute) {
    execute(slots_.size(), [&](std::size_t s) {
        if (!slots_[s].fits) return;
        for (std::uint64_t k = 0; k < each; ++k) {
            Random random(seed, first + s * each + k);
            step(slots_[s], random, horizon);
        }
    });
}

void StaggerPhase::forget() {
    for (Slot& slot : slots_) slot.best = {};
}

}  // namespace pipeweaver::search
