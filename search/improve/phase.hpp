// Several searches of one sort at once, each a slot of the engine's rounds, forwards and backwards in time.
//
// A schedule read backwards is a schedule of the reversed problem. A list scheduler makes its decisions early in time
// well and its last ones badly; on the reversed problem it is the other way round, so both are tried:
//
//   slot 0, 2, ...   the problem       |F0 F1 F2    B0 B1 B2|
//   slot 1, 3, ...   time reversed     |B2 B1 B0    F2 F1 F0|   read from right to left, where all memory is given back
//
// A Search has prepare(mode), step(random, ...), which returns the makespan of the schedule it made last or INT64_MAX
// if it made none, and sequence() and mode(), that schedule.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/random.hpp"
#include "search/instance/candidate.hpp"
#include "search/instance/task_groups.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace pipeweaver::search {

template <class Search>
class Phase {
public:
    /// `slots` searches that begin under these modes.
    Phase(const Flat& flat, std::size_t slots, std::span<const std::uint32_t> mode)
        : sides_(sides_of(flat)), mode_(mode.begin(), mode.end()) {
        slots_.reserve(slots);
        for (std::size_t s = 0; s < slots; ++s) {
            const Side& side = *sides_[s % sides_.size()];
            slots_.emplace_back(flat, side);
            slots_.back().fits = !slots_.back().search.prepare(mode_);
        }
    }

    /// One round of `each` steps per slot; the first has the number `first`. `args` are what steps take beside random
    /// numbers.
    template <class... Args>
    void round(std::uint64_t seed, std::uint64_t first, std::uint64_t each, const Executor& execute,
               const Args&... args) {
        execute(slots_.size(), [&](std::size_t s) {
            Slot& slot = slots_[s];
            if (!slot.fits) return;
            for (std::uint64_t k = 0; k < each; ++k) {
                Random random(seed, first + s * each + k);
                keep_if_better(slot, slot.search.step(random, args...));
            }
        });
    }

    std::size_t size() const { return slots_.size(); }

    /// Per slot, the best schedule since forget(); not valid() before the first round after it.
    const Candidate& best(std::size_t slot) const { return slots_[slot].best; }
    void forget() {
        for (Slot& slot : slots_) slot.best = {};
    }

protected:
    struct Slot {
        Slot(const Flat& forwards, const Side& side_)
            : side(&side_), search(side_.flat, side_.groups), current(forwards) {}

        const Side* side;
        Search search;
        IncrementalSchedule current;
        Candidate best;
        bool fits = false;
    };

    const std::vector<std::unique_ptr<Side>>& sides() const { return sides_; }
    std::vector<Slot>& slots() { return slots_; }
    const std::vector<std::uint32_t>& mode() const { return mode_; }

private:
    // Read backwards, a schedule may end sooner than it began late: its own makespan is an upper bound.
    void keep_if_better(Slot& slot, std::int64_t makespan) {
        if (makespan == INT64_MAX || (slot.best.valid() && makespan >= slot.best.energy.makespan)) return;
        slot.current.load(slot.side->forwards(slot.search.sequence()), slot.search.mode());
        Candidate candidate;
        store(slot.current, candidate);
        if (better(candidate, slot.best)) slot.best = std::move(candidate);
    }

    std::vector<std::unique_ptr<Side>> sides_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> mode_;
};

}  // namespace pipeweaver::search
