// Memory of a rank along its order: the one loop of the project that adds up what tasks take and give back.
//
//   held  |      ____
//         |   __|    |__        a task takes `acquire` at its start, gives `release` back at its end;
//         |__|          |__     the base is held all the time
//         +------------------> order of the rank
#pragma once

#include "pipeweaver/schedule/problem.hpp"

#include <span>

namespace pipeweaver::schedule {

/// Calls visit(task, during, after) for each task of the rank's order: what the rank holds while it runs, and once it
/// has ended. Pre: `costs` has every task's (Replayer::costs()).
template <class Visit>
void walk_memory(const Rank& rank, std::span<const TaskId> order, std::span<const TaskCost> costs, Visit visit) {
    Bytes held = rank.base;
    for (const TaskId task : order) {
        const TaskCost& cost = costs[index(task)];
        const Bytes during = held + cost.acquire;
        held = during - cost.release;
        visit(task, during, held);
    }
}

}  // namespace pipeweaver::schedule
