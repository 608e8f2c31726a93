// Schedules of a plan, matched to the step that they were made for.
#pragma once

#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "planner/replicas/assignment.hpp"

#include <vector>

namespace pipeweaver::planner {

/// A replica's schedule on the partition whose problem it is of.
struct MatchedSchedule {
    partition::Partition partition;
    emulator::SplitChoice split;  ///< which backwards it splits
    schedule::Schedule schedule;
};

struct MatchedSchedules {
    std::vector<MatchedSchedule> replicas;
    Assignment assignment;  ///< the batch as the plan assignment it out
};

/// Throws Error{input} where a schedule is of another model, batch, layout or costs than the job's. `partition`:
/// the plan's. Pre: `given` has one for each replica; `by_load` = assign(job, batch).
[[nodiscard]] MatchedSchedules match(const std::vector<GivenSchedule>& given, const Job& job, const Batch& batch,
                                     const partition::Partition& partition, const Assignment& by_load,
                                     const Executor& execute);

}  // namespace pipeweaver::planner
