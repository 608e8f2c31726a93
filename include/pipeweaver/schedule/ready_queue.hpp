// A schedule whose ranks do not wait for the next task of their lists: each runs, whenever it is free, the first task
// of its list that can start. What a runtime with a queue of ready tasks does where times are not those of the plan.
//
// Memory       A task goes ahead of others only if every rank's list still fits its capacity afterwards, so no queue
//              comes to a stop. A rank without a capacity may hold anything.
// Limits       Messages may arrive in any order: a runtime whose receives are posted in the order of a list waits more.
// Determinism  equal arguments give equal results.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace pipeweaver::schedule {

/// Used again from replay to replay.
struct ReadySpace {
    std::vector<std::pair<std::int64_t, std::uint32_t>> events;  ///< a heap
    std::vector<std::uint64_t> ready;                            ///< a bit for each place
    std::vector<char> begun;                                     ///< per place in the lists
    std::vector<std::uint32_t> missing;                          ///< per task: edges to it from tasks that run still
    std::vector<std::int64_t> ready_at;                          ///< per task
};

class ReadyQueue {
public:
    /// Pre: the schedule's replay on `replayer` completes. Keeps nothing of its arguments.
    ReadyQueue(const Replayer& replayer, const Schedule& schedule);

    /// Makespan if task i lasts duration_ns[i]. Pre: one duration for each task, each 1 ns or more.
    /// Time O((tasks + edges) log tasks), and a look at the tasks that are passed over for each that goes ahead.
    [[nodiscard]] Duration makespan(std::span<const std::int64_t> duration_ns, ReadySpace& space) const;

private:
    class Run;

    struct Need {
        std::int64_t acquire, release;  // bytes

        std::int64_t kept() const { return acquire - release; }
    };
    struct Lane {                           // of a rank
        std::uint32_t first = 0, last = 0;  // places in list_
        std::int64_t capacity = 0, base = 0, tail = 0;
    };

    std::vector<Lane> lanes_;
    std::vector<std::uint32_t> list_;                           // all ranks' lists, one behind the other
    std::vector<Need> need_;                                    // per place
    std::vector<std::uint32_t> place_of_, lane_of_, edges_to_;  // per task
    std::vector<std::uint32_t> first_after_;                    // per task and one more: of its arcs
    std::vector<Replayer::Arc> after_;
};

}  // namespace pipeweaver::schedule
