// Schedules of a plan, matched to the step that they were made for.
#pragma once

#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "planner/evaluate/evaluate.hpp"

#include <vector>

namespace pipeweaver::planner {

/// A replica's schedule on the partition whose problem it is of.
struct MatchedSchedule {
    partition::Partition partition;
    emulator::SplitChoice split;  ///< which backwards it splits
    schedule::Schedule schedule;
};

/// Throws Error{input} where a schedule is of another model, batch, layout or costs than the setup and the batch that
/// `replicas` share. `partition`: the plan's; none: one of those that partition::partitions() makes of the batch. Pre: one
/// for each replica.
[[nodiscard]] std::vector<MatchedSchedule> match(const std::vector<GivenSchedule>& given, const emulator::Setup& setup,
                                                 const std::optional<partition::Partition>& partition,
                                                 const Microbatches& batch, const std::vector<Microbatches>& replicas);

}  // namespace pipeweaver::planner
