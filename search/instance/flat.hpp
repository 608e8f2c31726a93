// The schedule problem as flat arrays, with the rules of a search added to its edges. Made once, read by all slots.
//
// Units        times are nanoseconds, memory is bytes, tasks and ranks are plain indices.
// Threads      read-only after construction.
#pragma once

#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/search/rules.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace pipeweaver::search {

using Arc = schedule::Replayer::Arc;

/// What a task costs, as plain numbers.
struct Cost {
    std::int64_t duration = 1;
    std::int64_t acquire = 0;
    std::int64_t release = 0;

    std::int64_t net() const { return acquire - release; }
};

/// Lists of items grouped by an index: those of `i` are items[first[i]] ... items[first[i + 1] - 1].
template <class Item>
struct Groups {
    std::vector<std::uint32_t> first{0};
    std::vector<Item> items;

    std::span<const Item> operator[](std::size_t i) const {
        return {items.data() + first[i], items.data() + first[i + 1]};
    }
    std::size_t size() const { return first.size() - 1; }
};

struct Flat {
    /// Throws Error{input} where the fixed order of a rank contradicts the edges.
    explicit Flat(const schedule::Replayer& with, const Rules& rules = {});

    const schedule::Problem& problem() const { return replayer->problem(); }
    std::uint32_t tasks() const { return static_cast<std::uint32_t>(rank_of.size()); }
    std::uint32_t ranks() const { return static_cast<std::uint32_t>(room.size()); }

    /// Number of modes of the task's pair; 1 without a pair.
    std::uint32_t modes(std::uint32_t task) const { return cost_first[task + 1] - cost_first[task]; }
    const Cost& cost(std::uint32_t task, std::uint32_t mode) const { return cost_table[cost_first[task] + mode]; }

    /// Whether some schedule may have the task's pair in this mode (fitting_modes.hpp).
    bool fits(std::uint32_t task, std::uint32_t mode) const { return fits_table[cost_first[task] + mode] != 0; }

    /// Per task under the modes of all pairs.
    std::vector<Cost> costs(std::span<const std::uint32_t> mode) const;

    const schedule::Replayer* replayer;
    std::vector<std::uint32_t> rank_of;
    std::vector<std::uint8_t> late;         ///< per task: a backward (B, I, W), or an X that follows one
    std::vector<std::int64_t> room;         ///< per rank: capacity - base; the largest number where unlimited
    std::vector<std::int64_t> rank_begin;   ///< per rank: when it may begin; 0 except in a reversed problem
    std::vector<std::int64_t> rank_tail;    ///< per rank: what it must still do after its last task
    std::vector<std::uint32_t> pair_of;     ///< per task; Replayer::unpaired
    std::vector<std::uint32_t> cost_first;  ///< per task, into cost_table, which has an entry per mode
    std::vector<Cost> cost_table;
    std::vector<std::uint8_t> fits_table;    ///< per entry of cost_table
    std::vector<std::int64_t> shortest;      ///< per task: smallest duration over its modes that fit
    Groups<Arc> before, after;               ///< per task: arcs of the edges and of the rules
    Groups<Arc> cross_before, cross_after;   ///< the same, less what the order on a rank implies: no lag, one rank
    std::vector<std::uint32_t> topological;  ///< all tasks, none before its predecessors
    std::vector<std::uint32_t> reading;      ///< the same, a microbatch at a time, its items one after the other
    std::vector<std::uint32_t> place;        ///< per task: index in `reading`

    /// Longest path of smallest durations: from the start of the step to the task's start, and from the task's end to
    /// the end of the step, its rank's tail included.
    std::vector<std::int64_t> head, tail;
};

/// Forward, backward, and the last one: the weight gradient, or the backward again.
[[nodiscard]] std::array<std::uint32_t, 3> tasks_of(const schedule::Pair& pair);

/// Memory that no rank can ever want: a rank without capacity.
constexpr std::int64_t unlimited = INT64_MAX;

/// A topological order that takes, of all tasks whose predecessors are taken, the one with the smallest key.
/// Shorter than the number of tasks if there is a cycle. Pre: keys differ, and are below the number of tasks.
[[nodiscard]] std::vector<std::uint32_t> sorted_by_key(const Groups<Arc>& before, const Groups<Arc>& after,
                                                       std::span<const std::uint32_t> key);

/// The same problem with time running backwards: its schedules, read from the end, are schedules of `flat`.
/// Pre: returns_all_memory(flat).
[[nodiscard]] Flat reversed(const Flat& flat);

/// Does each rank end with the memory it began with?
[[nodiscard]] bool returns_all_memory(const Flat& flat);

/// Per task, the connected part of the task graph it is in: usually one per microbatch. Numbered in reading order.
[[nodiscard]] std::vector<std::uint32_t> components_of(const Flat& flat);

/// Numbers the tasks 0, 1, ... by `less`, ties by index.
template <class Less>
std::vector<std::uint32_t> keys_by(std::uint32_t tasks, Less less) {
    std::vector<std::uint32_t> sorted(tasks), key(tasks);
    std::iota(sorted.begin(), sorted.end(), 0U);
    std::stable_sort(sorted.begin(), sorted.end(), less);
    for (std::uint32_t i = 0; i < tasks; ++i) key[sorted[i]] = i;
    return key;
}

/// A makespan that no schedule without needless waiting exceeds: all that can follow one another.
[[nodiscard]] std::int64_t longest_makespan(const Flat& flat);

/// All times of a schedule without needless waiting are multiples of this.
[[nodiscard]] std::int64_t time_unit(const Flat& flat);

/// A sequence of tasks as a schedule: each rank runs its tasks in the sequence's order.
[[nodiscard]] schedule::Schedule as_schedule(const Flat& flat, std::span<const std::uint32_t> sequence,
                                             std::span<const std::uint32_t> mode);

}  // namespace pipeweaver::search
