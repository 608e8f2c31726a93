// An order replayed in one pass over flat arrays: times, memory and the length of the critical path. For schedules that
// are looked at once; an IncrementalSchedule is for those that are changed step by step.
//
// Allocation   none after construction.
#pragma once

#include "search/instance/flat.hpp"

namespace pipeweaver::search {

/// What is to be made small: the makespan first. Makespans alone lie on plateaus, so ends of all tasks count, too.
struct Energy {
    std::int64_t makespan = 0;
    std::int64_t ends = 0;  ///< sum of all tasks' ends, in units of 2^end_shift(flat) ns
    friend bool operator==(const Energy&, const Energy&) = default;
};

/// The least for which the sum of all ends cannot overflow.
[[nodiscard]] unsigned end_shift(const Flat& flat);

class FlatReplay {
public:
    explicit FlatReplay(const Flat& flat);

    /// Pre: `sequence` has all tasks and is topological for the edges; each rank runs its tasks in this order.
    const Energy& replay(std::span<const std::uint32_t> sequence, std::span<const std::uint32_t> mode);

    // Of the last replay.
    const Energy& energy() const { return energy_; }
    std::int64_t end(std::uint32_t task) const { return end_[task]; }

    /// Largest memory of a rank above its base.
    std::int64_t peak(std::uint32_t rank) const { return rank_[rank].peak; }

private:
    void set_modes(std::span<const std::uint32_t> mode);

    struct Rank {
        std::int64_t clock = 0, level = 0, peak = 0;
    };

    const Flat& flat_;
    unsigned shift_;
    std::vector<std::uint32_t> mode_;  // of cost_
    std::vector<Cost> cost_;
    std::vector<std::int64_t> end_;
    std::vector<Rank> rank_;
    Energy energy_;
};

}  // namespace pipeweaver::search
